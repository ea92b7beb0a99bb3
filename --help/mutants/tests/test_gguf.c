/* The GGUF reader: hostile headers, one row each; what must open, and what is then there; every prefix of a good file; what has no view. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../tools/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Files in memory -------------------------------------------------------------------------------------------- */

struct image {
    unsigned char bytes[1 << 17];
    size_t n;
};

static void put(struct image *i, uint64_t number, size_t n_bytes) {
    for (size_t k = 0; k < n_bytes; k++) {
        i->bytes[i->n++] = (unsigned char)(number >> 8 * k);
    }
}

static void text(struct image *i, const char *string, size_t n_bytes) {
    put(i, n_bytes, 8);
    memcpy(i->bytes + i->n, string, n_bytes);
    i->n += n_bytes;
}

static void word(struct image *i, const char *string) { text(i, string, strlen(string)); }

static void head(struct image *i, uint32_t version, uint64_t n_tensors, uint64_t n_keys) {
    i->n = 0;
    memcpy(i->bytes, "GGUF", 4);
    i->n = 4;
    put(i, version, 4);
    put(i, n_tensors, 8);
    put(i, n_keys, 8);
}

static void number32(struct image *i, const char *key, uint32_t value) {
    word(i, key);
    put(i, 4, 4);
    put(i, value, 4);
}

/* Extents as GGUF has them, the fastest first. */
static void tensor(struct image *i, const char *name, uint32_t type, uint64_t offset, uint32_t rank, const uint64_t *extents) {
    word(i, name);
    put(i, rank, 4);
    for (uint32_t k = 0; k < rank; k++) {
        put(i, extents[k], 8);
    }
    put(i, type, 4);
    put(i, offset, 8);
}

static void data(struct image *i, size_t alignment, size_t n_bytes) {
    while (i->n % alignment) {
        i->bytes[i->n++] = 0;
    }
    for (size_t k = 0; k < n_bytes; k++) {
        i->bytes[i->n++] = (unsigned char)k;
    }
}

#define EXTENTS(...) (const uint64_t[]){ __VA_ARGS__ }

/* In a block exactly as long, so that a sanitizer sees a read past the end. */
static bool parse(const struct image *i, size_t n_bytes, st_file **file, void **block, st_error *error) {
    *block = malloc(n_bytes ? n_bytes : 1);
    assert_non_null(*block);
    memcpy(*block, i->bytes, n_bytes);
    *file = NULL;
    return gguf_parse("FILE", *block, n_bytes, file, error);
}

static void expect(const struct image *i, const char *label, const char *expected) {
    st_file *file;
    void *block;
    st_error error = { 0 };
    bool opened = parse(i, i->n, &file, &block, &error);
    if (opened != (expected == NULL) || (expected && !strstr(error.text, expected))) {
        fail_msg("%s: %s%s", label, opened ? "opened" : "refused: ", opened ? "" : error.text);
    }
    if (expected && strncmp(error.text, "FILE: ", 6) != 0) {
        fail_msg("%s: the message does not name the file: %s", label, error.text);
    }
    st_close(file);
    free(block);
}

static struct image one;

/* ---- Headers ---------------------------------------------------------------------------------------------------- */

static void versions_and_counts(void **state) {
    (void)state;
    head(&one, 3, 0, 0);
    expect(&one, "empty", NULL);
    head(&one, 2, 0, 0);
    expect(&one, "version 2", NULL);
    head(&one, 1, 0, 0);
    expect(&one, "version 1", "GGUF version 1, expected 2 or 3");
    head(&one, 4, 0, 0);
    expect(&one, "version 4", "GGUF version 4");
    head(&one, 0x03000000, 0, 0);
    expect(&one, "big-endian", "a big-endian GGUF file");
    head(&one, 3, 0, 0);
    one.bytes[3] = 'f';
    expect(&one, "another magic", "not a GGUF file");
    one.n = 3;
    expect(&one, "three bytes", "not a GGUF file");
    one.n = 0;
    expect(&one, "nothing", "not a GGUF file");
    head(&one, 3, UINT64_MAX, 0);
    expect(&one, "all tensors there are", "truncated: the file ends within a tensor's name");
    head(&one, 3, 0, UINT64_MAX);
    expect(&one, "all keys there are", "truncated: the file ends within a key");
    head(&one, 3, 1, 0);
    put(&one, 0, 8);
    expect(&one, "zeros", "a tensor's name has 0 bytes, expected 1 to 65535");
}

static void metadata_that_is_refused(void **state) {
    static const struct { const char *label; uint32_t type; const char *bytes; size_t n_bytes; const char *expected; } values[] = {
        { "unknown type", 13, "", 0, "key k: unknown type 13" },
        { "far type", UINT32_MAX, "", 0, "key k: unknown type 4294967295" },
        { "a bool of 2", 7, "\2", 1, "key k: a bool of 2, expected 0 or 1" },
        { "a short value", 4, "\1\2\3", 3, "truncated: the file ends within a value" },
        { "no value", 0, "", 0, "truncated" },
        { "a string past the end", 8, "\5\0\0\0\0\0\0\0abcd", 12, "truncated: a string has 5 bytes, the file 4 after its length" },
        { "a string of 2^64 - 1", 8, "\377\377\377\377\377\377\377\377", 8, "truncated: a string has 18446744073709551615 bytes" },
        { "an array of what", 9, "\15\0\0\0\1\0\0\0\0\0\0\0", 12, "key k: an array of the unknown type 13" },
        { "an array past the end", 9, "\4\0\0\0\2\0\0\0\0\0\0\0abcdefg", 19, "an array of 2 elements of 4 bytes, but 7 bytes are left" },
        { "an array of 2^61 doubles", 9, "\14\0\0\0\0\0\0\0\0\0\0\40abc", 15, "an array of 2305843009213693952 elements of 8 bytes" },
        { "an array of 2^64 - 1 strings", 9, "\10\0\0\0\377\377\377\377\377\377\377\377", 12, "truncated: the file ends within a string of an array" },
        { "an array of 2^64 - 1 arrays", 9, "\11\0\0\0\377\377\377\377\377\377\377\377", 12, "truncated: the file ends within an array's type" },
        { "half an array", 9, "\11\0\0\0", 4, "truncated: the file ends within an array's length" },
    };
    (void)state;
    for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
        head(&one, 3, 0, 1);
        word(&one, "k");
        put(&one, values[k].type, 4);
        memcpy(one.bytes + one.n, values[k].bytes, values[k].n_bytes);
        one.n += values[k].n_bytes;
        expect(&one, values[k].label, values[k].expected);
    }
    for (int depth = 1; depth <= 6; depth++) {
        head(&one, 3, 0, 1);
        word(&one, "deep");
        put(&one, 9, 4);
        for (int k = 0; k < depth; k++) {
            put(&one, k + 1 < depth ? 9 : 0, 4);
            put(&one, k + 1 < depth ? 1 : 0, 8);
        }
        expect(&one, "nested arrays", depth <= 4 ? NULL : "key deep: arrays nested deeper than 4");
    }
    head(&one, 3, 0, 2);
    number32(&one, "k", 1);
    number32(&one, "k", 1);
    expect(&one, "a key twice", "key k is there twice");
    head(&one, 3, 0, 1);
    number32(&one, "", 1);
    expect(&one, "an empty key", "a key has 0 bytes");
    head(&one, 3, 0, 1);
    number32(&one, "\xff\xfe", 1);
    expect(&one, "not UTF-8", "key is not UTF-8");
    head(&one, 3, 0, 1);
    text(&one, "a\0b", 3);
    put(&one, 4, 4);
    put(&one, 0, 4);
    expect(&one, "a zero byte", "a key has a zero byte in it");
    head(&one, 3, 0, 1);
    static char longest[65537];
    memset(longest, 'x', sizeof longest);
    text(&one, longest, 65536);
    put(&one, 4, 4);
    put(&one, 0, 4);
    expect(&one, "a long key", "a key has 65536 bytes, expected 1 to 65535");
    static const uint32_t alignments[] = { 0, 3, 48, 0xffffffff };
    for (size_t k = 0; k < 4; k++) {
        head(&one, 3, 0, 1);
        number32(&one, "general.alignment", alignments[k]);
        expect(&one, "an alignment", "key general.alignment is no power of two");
    }
    head(&one, 3, 0, 1);
    word(&one, "general.alignment");
    put(&one, 8, 4);
    word(&one, "32");
    expect(&one, "an alignment as text", "key general.alignment is no power of two");
}

static void tensors_that_are_refused(void **state) {
    static const struct { const char *label; uint32_t type; uint64_t offset; uint32_t rank; uint64_t extents[9]; size_t n_data; const char *expected; } rows[] = {
        { "fits", 0, 0, 1, { 4 }, 16, NULL },
        { "empty", 0, 32, 2, { 0, 7 }, 32, NULL },
        { "rank 0", 0, 0, 0, { 0 }, 4, NULL },
        { "rank 8", 0, 0, 8, { 1, 1, 1, 1, 1, 1, 1, 4 }, 16, NULL },
        { "padding after it", 0, 0, 1, { 4 }, 32, NULL },
        { "a gap before it", 0, 64, 1, { 4 }, 80, NULL },
        { "blocks", 8, 0, 2, { 64, 3 }, 204, NULL },
        { "an unknown type", 77, 0, 1, { 4 }, 0, NULL },
        { "rank 9", 0, 0, 9, { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 4, "tensor x: rank 9 is above 8" },
        { "rank 2^32 - 1", 0, 0, UINT32_MAX, { 1 }, 4, "rank 4294967295 is above 8" },
        { "an extent of 2^63", 0, 0, 1, { (uint64_t)1 << 63 }, 4, "tensor x: an extent of 9223372036854775808 does not fit 63 bits" },
        { "elements past 63 bits", 0, 0, 2, { (uint64_t)1 << 32, (uint64_t)1 << 31 }, 4, "more elements than fit 63 bits" },
        { "bytes past 64 bits", 0, 0, 1, { INT64_MAX }, 4, "more bytes than fit 64 bits" },
        { "too short", 0, 0, 1, { 5 }, 19, "20 bytes from 0 on leave the file, which has 19 bytes of data" },
        { "an offset past the end", 0, 64, 1, { 1 }, 32, "4 bytes from 64 on leave the file" },
        { "an offset of 2^64 - 32", 0, UINT64_MAX - 31, 1, { 8 }, 32, "leave the file" },
        { "an offset that is not aligned", 0, 16, 1, { 1 }, 32, "its offset 16 is no multiple of the alignment 32" },
        { "part of a block", 8, 0, 1, { 33 }, 68, "rows of 33 elements are no whole blocks of 32 of Q8_0" },
        { "an unknown type past the end", 77, 64, 1, { 4 }, 32, "0 bytes from 64 on leave the file" },
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        head(&one, 3, 1, 0);
        tensor(&one, "x", rows[k].type, rows[k].offset, rows[k].rank > 9 ? 0 : rows[k].rank, rows[k].extents);
        if (rows[k].rank > 9) {
            memset(one.bytes + 24 + 9, 0xff, 4);
        }
        data(&one, 32, rows[k].n_data);
        expect(&one, rows[k].label, rows[k].expected);
    }
    head(&one, 3, 2, 0);
    tensor(&one, "x", 0, 0, 1, EXTENTS(16));
    tensor(&one, "y", 0, 32, 1, EXTENTS(8));
    data(&one, 32, 64);
    expect(&one, "an overlap", "tensor y: its data overlap those of tensor x");
    head(&one, 3, 2, 0);
    tensor(&one, "x", 0, 0, 1, EXTENTS(8));
    tensor(&one, "y", 0, 0, 1, EXTENTS(8));
    data(&one, 32, 64);
    expect(&one, "the same data twice", "its data overlap those of");
    head(&one, 3, 2, 0);
    tensor(&one, "x", 0, 0, 1, EXTENTS(8));
    tensor(&one, "x", 0, 32, 1, EXTENTS(8));
    data(&one, 32, 64);
    expect(&one, "a name twice", "tensor x is there twice");
    head(&one, 3, 1, 0);
    tensor(&one, "\xc0\xaf", 0, 0, 1, EXTENTS(8));
    data(&one, 32, 32);
    expect(&one, "overlong UTF-8", "tensor is not UTF-8");
}

/* ---- What opens ------------------------------------------------------------------------------------------------- */

static void good_file(struct image *i, uint32_t alignment) {
    head(i, 3, 6, 9);
    number32(i, "general.alignment", alignment);
    word(i, "general.architecture");
    put(i, 8, 4);
    word(i, "qwen35");
    number32(i, "qwen35.ssm.group_count", 16);
    word(i, "tokens");
    put(i, 9, 4);
    put(i, 8, 4);
    put(i, 2, 8);
    word(i, "a");
    text(i, "\xff\0", 2);                                   /* tokens are bytes */
    word(i, "negative");
    put(i, 5, 4);
    put(i, (uint32_t)-7, 4);
    word(i, "large");
    put(i, 10, 4);
    put(i, UINT64_MAX, 8);
    word(i, "true");
    put(i, 7, 4);
    put(i, 1, 1);
    word(i, "real");
    put(i, 6, 4);
    put(i, 0x3f800000, 4);
    word(i, "bytes");
    put(i, 8, 4);
    text(i, "\xff", 1);
    uint64_t at = 0;
    tensor(i, "blk.0.ssm_a", 0, at, 1, EXTENTS(4));
    at += alignment > 16 ? alignment : 16;
    tensor(i, "blk.0.ssm_dt.bias", 30, at, 2, EXTENTS(3, 4));
    at += alignment > 32 ? alignment : 32;
    tensor(i, "blk.0.ssm_out.weight", 12, at, 2, EXTENTS(256, 2));
    at += 288 + (alignment - 288 % alignment) % alignment;
    tensor(i, "of.tomorrow", 99, at, 1, EXTENTS(3));
    tensor(i, "of.tomorrow.too", 99, at, 1, EXTENTS(4));
    tensor(i, "wide", 28, at, 1, EXTENTS(2));
    data(i, alignment, at + 16);
}

static void what_is_there(void **state) {
    static const uint32_t alignments[] = { 1, 8, 32, 64, 4096 };
    (void)state;
    for (size_t k = 0; k < sizeof alignments / sizeof alignments[0]; k++) {
        st_file *file;
        void *block;
        st_error error = { 0 };
        ol_tensor view;
        int64_t number = 0;
        good_file(&one, alignments[k]);
        if (!parse(&one, one.n, &file, &block, &error)) {
            fail_msg("alignment %u: %s", alignments[k], error.text);
        }
        assert_true(file->is_gguf);
        assert_int_equal(file->n_tensors, 6);
        assert_string_equal(file->tensors[0].name, "blk.0.ssm_a");
        assert_string_equal(gguf_string(file, "general.architecture"), "qwen35");
        assert_true(gguf_number(file, "qwen35.ssm.group_count", &number) && number == 16);
        assert_true(gguf_number(file, "negative", &number) && number == -7);
        assert_null(gguf_string(file, "qwen35.ssm.group_count"));
        assert_null(gguf_string(file, "bytes"));
        assert_null(gguf_string(file, "nothing"));
        assert_false(gguf_number(file, "general.architecture", &number) || gguf_number(file, "tokens", &number) || gguf_number(file, "large", &number) ||
                     gguf_number(file, "true", &number) || gguf_number(file, "real", &number));
        assert_true(st_view(file, st_find(file, "blk.0.ssm_dt.bias"), &view, &error));
        assert_true(view.dtype == OL_BFLOAT16 && view.rank == 2 && view.shape[0] == 4 && view.shape[1] == 3 && view.strides[0] == 3);
        assert_true(st_view(file, st_find(file, "blk.0.ssm_a"), &view, &error));
        assert_int_equal(((const unsigned char *)view.data)[5], 5);
        assert_int_equal(((const unsigned char *)view.data - (const unsigned char *)block) % alignments[k], 0);
        static const char *const refused[][2] = { { "blk.0.ssm_out.weight", "dtype Q4_K is quantised; expected F32, F16 or BF16" }, { "wide", "dtype F64 cannot be computed with here" },
                                                  { "of.tomorrow", "dtype number 99 is not known" }, { "of.tomorrow.too", "dtype number 99 is not known" } };
        for (size_t r = 0; r < 4; r++) {
            assert_false(st_view(file, st_find(file, refused[r][0]), &view, &error));
            assert_non_null(strstr(error.text, refused[r][1]));
        }
        st_close(file);
        free(block);
    }
}

/* No prefix of a file may be read past its end; none but the whole one, give or take nothing, opens. */
static void every_prefix(void **state) {
    (void)state;
    good_file(&one, 32);
    for (size_t n = 0; n < one.n; n++) {
        st_file *file;
        void *block;
        st_error error;
        if (parse(&one, n, &file, &block, &error)) {
            fail_msg("a prefix of %zu of %zu bytes opened", n, one.n);
        }
        free(block);
    }
}

/* Each byte of the header changed: opens or not, within bounds. */
static void every_byte_changed(void **state) {
    (void)state;
    good_file(&one, 32);
    size_t n_opened = 0, n = 700 < one.n ? 700 : one.n;
    for (size_t at = 0; at < n; at++) {
        for (int bit = 0; bit < 8; bit++) {
            st_file *file;
            void *block;
            st_error error;
            one.bytes[at] ^= (unsigned char)(1 << bit);
            if (parse(&one, one.n, &file, &block, &error)) {
                n_opened++;
                for (size_t k = 0; k < file->n_tensors; k++) {
                    const st_tensor *t = &file->tensors[k];
                    assert_true(t->data >= (unsigned char *)block && t->n_bytes <= (uint64_t)((unsigned char *)block + one.n - t->data));
                }
                st_close(file);
            }
            free(block);
            one.bytes[at] ^= (unsigned char)(1 << bit);
        }
    }
    assert_true(n_opened > 0 && n_opened < 8 * n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_and_counts), cmocka_unit_test(metadata_that_is_refused), cmocka_unit_test(tensors_that_are_refused),
        cmocka_unit_test(what_is_there), cmocka_unit_test(every_prefix), cmocka_unit_test(every_byte_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
