/* The safetensors reader and writer: hostile headers, one row each; what must open; what is written and how failures end.
 * Needs only tools/safetensors*.c and, for the writer, ol_dtype_size of the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../tools/safetensors.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A file in memory: length, header, data. Its block is exactly as long, so that a sanitizer sees a read past the end. */
struct image {
    unsigned char *bytes;
    size_t n_bytes;
};

static struct image image_of(const char *header, size_t header_bytes, uint64_t stated_bytes, size_t data_bytes) {
    struct image image = { .n_bytes = 8 + header_bytes + data_bytes };
    image.bytes = malloc(image.n_bytes);
    assert_non_null(image.bytes);
    for (int i = 0; i < 8; i++) {
        image.bytes[i] = (unsigned char)(stated_bytes >> 8 * i);
    }
    memcpy(image.bytes + 8, header, header_bytes);
    for (size_t i = 0; i < data_bytes; i++) {
        image.bytes[8 + header_bytes + i] = (unsigned char)i;
    }
    return image;
}

/* ---- Headers --------------------------------------------------------------------------------------------------- */

#define ENTRY(name, dtype, shape, begin, end) \
    "\"" name "\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"
#define ONE(dtype, shape, begin, end) "{" ENTRY("x", dtype, shape, begin, end) "}"
#define BYTES(name, count, begin, end) ENTRY(name, "\"U8\"", "[" count "]", begin, end)

static const struct header_case {
    const char *label, *header;
    size_t data_bytes;
    const char *expected;              /* part of the message; NULL: opens */
} header_cases[] = {
    { "no tensors", "{}", 0, NULL },
    { "spaces after the object", "{}      ", 0, NULL },
    { "one tensor", ONE("\"F32\"", "[2]", "0", "8"), 8, NULL },
    { "rank 0", ONE("\"F32\"", "[]", "0", "4"), 4, NULL },
    { "rank 9", ONE("\"F32\"", "[1,1,1,1,1,1,1,1,2]", "0", "8"), 8, NULL },
    { "zero extent", ONE("\"F32\"", "[0, 4611686018427387904, 4611686018427387904]", "0", "0"), 0, NULL },
    { "half bytes that fill", ONE("\"F4\"", "[4]", "0", "2"), 2, NULL },
    { "unknown dtype", ONE("\"Q3_K\"", "[2]", "0", "7"), 7, NULL },
    { "a dtype not computed with", ONE("\"F8_E4M3\"", "[7]", "0", "7"), 7, NULL },
    { "metadata", "{\"__metadata__\":{\"format\":\"pt\"}}", 0, NULL },
    { "fields of a later version", "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"note\":3}}", 1, NULL },
    { "an empty tensor between two", "{" BYTES("a", "2", "0", "2") "," ENTRY("e", "\"F32\"", "[0]", "2", "2") "," BYTES("b", "1", "2", "3") "}",
      3, NULL },

    { "not an object", "[]", 0, "not a JSON object" },
    { "a number", "17", 0, "not a JSON object" },
    { "leading space", " {}", 0, "not a JSON object" },
    { "cut off", "{\"x\":", 0, "not valid JSON" },
    { "text after it", "{} {}", 0, "not valid JSON" },
    { "not UTF-8", "{\"\xff\xfe\":{}}", 0, "not valid JSON" },
    { "overlong UTF-8", "{\"\xc0\xaf\":{}}", 0, "not valid JSON" },
    { "a surrogate", "{\"\\ud800\":{}}", 0, "not valid JSON" },
    { "NUL in a name", "{\"a\\u0000b\":{}}", 0, "not valid JSON" },
    { "the same name twice", "{" BYTES("x", "1", "0", "1") "," BYTES("x", "1", "1", "2") "}", 2, "duplicate" },
    { "the same key twice", "{\"x\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "duplicate" },
    { "the same name, escaped", "{" BYTES("x", "1", "0", "1") "," BYTES("\\u0078", "1", "1", "2") "}", 2, "duplicate" },
    { "metadata is a list", "{\"__metadata__\":[]}", 0, "\"__metadata__\" is not an object" },
    { "metadata of numbers", "{\"__metadata__\":{\"step\":3}}", 0, "value of \"step\" is not a string" },
    { "an entry is a number", "{\"x\":1}", 0, "tensor x: its entry is not an object" },
    { "no dtype", "{\"x\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "tensor x: \"dtype\" is not a string" },
    { "dtype is a number", ONE("7", "[1]", "0", "1"), 1, "\"dtype\" is not a string" },
    { "no shape", "{\"x\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "\"shape\" is not an array" },
    { "shape is a number", ONE("\"U8\"", "1", "0", "1"), 1, "\"shape\" is not an array" },
    { "negative extent", ONE("\"U8\"", "[-1]", "0", "1"), 1, "extent that is no integer" },
    { "fractional extent", ONE("\"U8\"", "[1.0]", "0", "1"), 1, "extent that is no integer" },
    { "exponent", ONE("\"U8\"", "[1e0]", "0", "1"), 1, "extent that is no integer" },
    { "an extent as text", ONE("\"U8\"", "[\"1\"]", "0", "1"), 1, "extent that is no integer" },
    { "true as an extent", ONE("\"U8\"", "[true]", "0", "1"), 1, "extent that is no integer" },
    { "an extent past 64 bits", ONE("\"U8\"", "[18446744073709551617]", "0", "1"), 1, "not valid JSON" },
    { "elements past 64 bits", ONE("\"U8\"", "[4294967296, 4294967297]", "0", "1"), 1, "more elements than fit" },
    { "bytes past 64 bits", ONE("\"F32\"", "[4611686018427387905]", "0", "4"), 4, "more bytes than fit" },
    { "half bytes that do not fill", ONE("\"F4\"", "[3]", "0", "2"), 2, "do not fill whole bytes" },
    { "too short for its shape", ONE("\"F32\"", "[2]", "0", "7"), 7, "2 elements of F32 take 8 bytes, but its range has 7" },
    { "too long for its shape", ONE("\"F32\"", "[2]", "0", "9"), 9, "take 8 bytes" },
    { "no offsets", "{\"x\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "\"data_offsets\" is not a pair" },
    { "one offset", "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "\"data_offsets\" is not a pair" },
    { "three offsets", "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}", 1, "\"data_offsets\" is not a pair" },
    { "a negative offset", ONE("\"U8\"", "[1]", "-1", "0"), 1, "\"data_offsets\" is not a pair" },
    { "a fractional offset", ONE("\"U8\"", "[1]", "0.0", "1"), 1, "\"data_offsets\" is not a pair" },
    { "ends before it begins", ONE("\"U8\"", "[1]", "1", "0"), 1, "ends before it begins" },
    { "leaves the file", ONE("\"U8\"", "[2]", "0", "2"), 1, "leaves the file" },
    { "far outside", ONE("\"U8\"", "[1]", "9223372036854775806", "9223372036854775807"), 1, "leaves the file" },
    { "an offset past 64 bits", ONE("\"U8\"", "[1]", "0", "99999999999999999999"), 1, "not valid JSON" },
    { "bytes before the first", ONE("\"U8\"", "[1]", "1", "2"), 2, "1 bytes of data before it belong to no tensor" },
    { "bytes after the last", ONE("\"U8\"", "[1]", "0", "1"), 2, "the last 1 bytes of data belong to no tensor" },
    { "data and no tensor", "{}", 1, "the last 1 bytes" },
    { "a hole", "{" BYTES("a", "1", "0", "1") "," BYTES("b", "1", "2", "3") "}", 3, "tensor b: 1 bytes of data before it" },
    { "an overlap", "{" BYTES("a", "2", "0", "2") "," BYTES("b", "2", "1", "3") "}", 3, "tensor b: its range overlaps that of tensor a" },
    { "the same range twice", "{" BYTES("a", "2", "0", "2") "," BYTES("b", "2", "0", "2") "}", 2, "overlaps" },
    { "an empty tensor inside another", "{" BYTES("a", "2", "0", "2") "," BYTES("e", "0", "1", "1") "}", 2, "overlaps" },
};

static void expect(const char *label, bool opened, const char *expected, const st_error *error) {
    if (opened != (expected == NULL) || (expected && !strstr(error->text, expected))) {
        fail_msg("%s: %s%s", label, opened ? "opened" : "refused: ", opened ? "" : error->text);
    }
    if (expected && strncmp(error->text, "FILE: ", 6) != 0) {
        fail_msg("%s: the message does not name the file: %s", label, error->text);
    }
}

static void headers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof header_cases / sizeof header_cases[0]; i++) {
        const struct header_case *one = &header_cases[i];
        struct image image = image_of(one->header, strlen(one->header), strlen(one->header), one->data_bytes);
        st_file *file = NULL;
        st_error error = { 0 };
        bool opened = st_parse("FILE", image.bytes, image.n_bytes, &file, &error);
        expect(one->label, opened, one->expected, &error);
        st_close(file);
        free(image.bytes);
    }
}

static void header_lengths(void **state) {
    static const struct {
        uint64_t stated;
        const char *expected;
    } rows[] = {
        { 0, "not a JSON object" },           { 1, "not valid JSON" },         { 3, "truncated" },
        { 100000000, "truncated" },           { 100000001, "over the limit" }, { UINT64_MAX, "over the limit" },
        { UINT64_C(1) << 63, "over the limit" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct image image = image_of("{}", 2, rows[i].stated, 0);
        st_file *file = NULL;
        st_error error = { 0 };
        expect("stated length", st_parse("FILE", image.bytes, image.n_bytes, &file, &error), rows[i].expected, &error);
        free(image.bytes);
    }
}

/* Every prefix of a good file is refused, and nothing past it is read. */
static void truncations(void **state) {
    const char *header = ONE("\"F32\"", "[2]", "0", "8");
    struct image image = image_of(header, strlen(header), strlen(header), 8);
    (void)state;
    for (size_t n = 0; n < image.n_bytes; n++) {
        unsigned char *prefix = malloc(n + (n == 0));
        st_file *file = NULL;
        st_error error = { 0 };
        assert_non_null(prefix);
        memcpy(prefix, image.bytes, n);
        assert_false(st_parse("FILE", prefix, n, &file, &error));
        free(prefix);
    }
    free(image.bytes);
}

/* jansson limits nesting; without that a header of brackets would overflow the stack. */
static void deep_nesting(void **state) {
    enum { DEPTH = 1000000 };
    char *header = malloc(DEPTH);
    st_file *file = NULL;
    st_error error = { 0 };
    (void)state;
    assert_non_null(header);
    memset(header, '[', DEPTH);
    memcpy(header, "{\"x\":", 5);
    struct image image = image_of(header, DEPTH, DEPTH, 0);
    expect("nesting", st_parse("FILE", image.bytes, image.n_bytes, &file, &error), "not valid JSON", &error);
    free(image.bytes);
    free(header);
}

/* ---- Views ----------------------------------------------------------------------------------------------------- */

static void views(void **state) {
    static const struct {
        const char *header;
        size_t data_bytes;
        const char *expected;
    } rows[] = {
        { ONE("\"BF16\"", "[2,3]", "0", "12"), 12, NULL },
        { ONE("\"F64\"", "[1]", "0", "8"), 8, "tensor x: dtype F64 cannot be computed with" },
        { ONE("\"F8_E4M3\"", "[1]", "0", "1"), 1, "tensor x: dtype F8_E4M3 cannot be computed with" },
        { ONE("\"Q3_K\"", "[2]", "0", "7"), 7, "tensor x: unknown dtype \"Q3_K\"" },
        { ONE("\"U8\"", "[1,1,1,1,1,1,1,1,2]", "0", "2"), 2, "tensor x: rank 9 is above 8" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct image image = image_of(rows[i].header, strlen(rows[i].header), strlen(rows[i].header), rows[i].data_bytes);
        st_file *file = NULL;
        st_error error = { 0 };
        ol_tensor view;
        assert_true(st_parse("FILE", image.bytes, image.n_bytes, &file, &error));
        const st_tensor *tensor = st_find(file, "x");
        assert_non_null(tensor);
        assert_null(st_find(file, "y"));
        expect(rows[i].header, st_view(file, tensor, &view, &error), rows[i].expected, &error);
        if (!rows[i].expected) {
            assert_int_equal(view.dtype, OL_BFLOAT16);
            assert_int_equal(view.rank, 2);
            assert_int_equal(view.shape[0], 2);
            assert_int_equal(view.strides[0], 3);
            assert_int_equal(view.strides[1], 1);
            assert_ptr_equal(view.data, image.bytes + image.n_bytes - 12);
        }
        st_close(file);
        free(image.bytes);
    }
}

static void finds_every_name(void **state) {
    enum { N = 500 };
    char *header = malloc(N * 80);
    size_t used = 1;
    st_file *file = NULL;
    st_error error = { 0 };
    (void)state;
    assert_non_null(header);
    header[0] = '{';
    for (int i = 0; i < N; i++) {
        used += (size_t)sprintf(header + used, "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                                i ? "," : "", i, i, i + 1);
    }
    header[used++] = '}';
    struct image image = image_of(header, used, used, N);
    assert_true(st_parse("FILE", image.bytes, image.n_bytes, &file, &error));
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        assert_non_null(st_find(file, name));
        assert_int_equal(st_find(file, name)->data[0], i & 255);
    }
    st_close(file);
    free(image.bytes);
    free(header);
}

/* ---- Files ----------------------------------------------------------------------------------------------------- */

/* Each test that writes gets a folder of its own. */
static int make_folder(void **state) {
    char *folder = strdup("/tmp/onelaunch-test-XXXXXX");
    if (!folder || !mkdtemp(folder)) {
        return -1;
    }
    *state = folder;
    return 0;
}

static int remove_folder(void **state) {
    char *folder = *state, path[512];
    DIR *stream = opendir(folder);
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        remove(path);
    }
    closedir(stream);
    int result = rmdir(folder);
    free(folder);
    return result;
}

static size_t count_files(const char *folder) {
    size_t n = 0;
    DIR *stream = opendir(folder);
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(stream);
    return n;
}

static void expect_open_fails(const char *path, const char *expected) {
    st_file *file = NULL;
    st_error error = { 0 };
    assert_false(st_open(path, &file, &error));
    assert_null(file);
    if (!strstr(error.text, expected) || strncmp(error.text, path, strlen(path)) != 0) {
        fail_msg("%s: %s", expected, error.text);
    }
}

static void odd_files(void **state) {
    char path[512];
    expect_open_fails(*state, "a directory");
    expect_open_fails("/dev/null", "a device");
    snprintf(path, sizeof path, "%s/none", (char *)*state);
    expect_open_fails(path, "No such file");
    snprintf(path, sizeof path, "%s/pipe", (char *)*state);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_open_fails(path, "a pipe");
    snprintf(path, sizeof path, "%s/empty", (char *)*state);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    expect_open_fails(path, "it is empty");
    assert_int_equal(chmod(path, 0), 0);
    if (geteuid() != 0) {
        expect_open_fails(path, "Permission denied");
    }
}

static const int64_t two_three[] = { 2, 3 }, three[] = { 3 }, none[] = { 0 };

/* What is written is read back, bit for bit (NaN payloads too), each tensor aligned to its elements. */
static void round_trip(void **state) {
    const uint16_t halves[] = { 0x7fc1, 0xffff, 0x8000 };
    const uint32_t words[] = { 0x7f800001, 0xffffffff, 1, 0x80000000, 0x7fc00000, 0x3f800000 };
    const uint8_t bytes[] = { 1, 0, 1 };
    const st_entry entries[] = {
        { "odd \"name\"\n", ol_tensor_contiguous(NULL, OL_BOOL, 1, three) },
        { "half", ol_tensor_contiguous(NULL, OL_BFLOAT16, 1, three) },
        { "single", ol_tensor_contiguous(NULL, OL_FLOAT32, 2, two_three) },
        { "nothing", ol_tensor_contiguous(NULL, OL_INT64, 1, none) },
        { "scalar", ol_tensor_contiguous(NULL, OL_UINT8, 0, NULL) },
    };
    char path[512];
    st_writer *writer = NULL;
    st_file *file = NULL;
    st_error error = { 0 };
    snprintf(path, sizeof path, "%s/out", (char *)*state);
    assert_true(st_writer_begin(path, entries, 5, "test", &writer, &error));
    assert_true(st_writer_put(writer, 2, words, &error));
    assert_true(st_writer_put(writer, 0, bytes, &error));
    assert_true(st_writer_put(writer, 1, halves, &error));
    assert_true(st_writer_put(writer, 3, NULL, &error));
    assert_true(st_writer_put(writer, 4, bytes, &error));
    assert_true(st_writer_commit(writer, &error));
    assert_int_equal(count_files(*state), 1);

    assert_true(st_open(path, &file, &error));
    assert_int_equal(file->n_tensors, 5);
    for (size_t i = 0; i < 5; i++) {
        ol_tensor view;
        const st_tensor *tensor = st_find(file, entries[i].name);
        assert_non_null(tensor);
        assert_true(st_view(file, tensor, &view, &error));
        assert_int_equal(view.dtype, entries[i].tensor.dtype);
        assert_int_equal(view.rank, entries[i].tensor.rank);
        assert_memory_equal(view.shape, entries[i].tensor.shape, sizeof view.shape);
        assert_int_equal((uintptr_t)view.data % ol_dtype_size(view.dtype), 0);
    }
    assert_memory_equal(st_find(file, "half")->data, halves, sizeof halves);
    assert_memory_equal(st_find(file, "single")->data, words, sizeof words);
    assert_memory_equal(st_find(file, "odd \"name\"\n")->data, bytes, sizeof bytes);
    st_close(file);
}

/* A header whose length is no multiple of eight puts float32 data anywhere. */
static void misaligned_data(void **state) {
    (void)state;
    for (size_t pad = 0; pad < 8; pad++) {
        char header[200];
        size_t length = (size_t)snprintf(header, sizeof header, "%s%.*s", ONE("\"F32\"", "[1]", "0", "4"), (int)pad, "        ");
        struct image image = image_of(header, length, length, 4);
        st_file *file = NULL;
        st_error error = { 0 };
        uint32_t word;
        assert_true(st_parse("FILE", image.bytes, image.n_bytes, &file, &error));
        memcpy(&word, st_find(file, "x")->data, 4);
        assert_int_equal(word, 0x03020100);
        st_close(file);
        free(image.bytes);
    }
}

static void put_text(const char *path, const char *text) {
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    fputs(text, stream);
    fclose(stream);
}

static void expect_text(const char *path, const char *expected) {
    char text[64] = { 0 };
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    assert_int_equal(fread(text, 1, sizeof text - 1, stream), strlen(expected));
    assert_string_equal(text, expected);
    fclose(stream);
}

/* Every way to fail leaves what stood there, and nothing beside it. */
static void failures_leave_nothing(void **state) {
    const st_entry entries[] = { { "x", ol_tensor_contiguous(NULL, OL_FLOAT32, 1, three) },
                                 { "y", ol_tensor_contiguous(NULL, OL_FLOAT32, 1, three) } };
    const st_entry twice[] = { entries[0], entries[0] };
    const float data[3] = { 0 };
    char path[512];
    st_writer *writer = NULL;
    st_error error = { 0 };
    snprintf(path, sizeof path, "%s/out", (char *)*state);
    put_text(path, "before");

    assert_true(st_writer_begin(path, entries, 2, "test", &writer, &error));
    st_writer_abort(writer);

    assert_true(st_writer_begin(path, entries, 2, "test", &writer, &error));
    assert_true(st_writer_put(writer, 0, data, &error));
    assert_false(st_writer_put(writer, 0, data, &error));
    assert_false(st_writer_put(writer, 2, data, &error));
    assert_false(st_writer_commit(writer, &error));                /* y was never written */
    assert_non_null(strstr(error.text, "never written"));

    assert_false(st_writer_begin(path, twice, 2, "test", &writer, &error));
    assert_non_null(strstr(error.text, "tensor x: the name is taken"));

    expect_text(path, "before");
    assert_int_equal(count_files(*state), 1);
}

static void only_files_are_replaced(void **state) {
    const st_entry entry = { "x", ol_tensor_contiguous(NULL, OL_FLOAT32, 1, three) };
    const float data[3] = { 0 };
    char path[512], link[512], missing[512];
    st_writer *writer = NULL;
    st_error error = { 0 };
    assert_false(st_writer_begin("/dev/null", &entry, 1, "test", &writer, &error));
    assert_false(st_writer_begin(*state, &entry, 1, "test", &writer, &error));
    assert_false(st_writer_begin("", &entry, 1, "test", &writer, &error));
    snprintf(missing, sizeof missing, "%s/none/out", (char *)*state);
    assert_false(st_writer_begin(missing, &entry, 1, "test", &writer, &error));

    /* through a link to the file it means, and the link stays one */
    snprintf(path, sizeof path, "%s/out", (char *)*state);
    snprintf(link, sizeof link, "%s/link", (char *)*state);
    put_text(path, "before");
    assert_int_equal(symlink("out", link), 0);
    assert_true(st_writer_begin(link, &entry, 1, "test", &writer, &error));
    assert_true(st_writer_put(writer, 0, data, &error));
    expect_text(path, "before");
    assert_true(st_writer_commit(writer, &error));
    struct stat status;
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    st_file *file = NULL;
    assert_true(st_open(path, &file, &error));
    st_close(file);
    assert_int_equal(count_files(*state), 2);
}

/* A process that is ended in the middle leaves no file. */
static void ended_in_the_middle(void **state) {
    const st_entry entry = { "x", ol_tensor_contiguous(NULL, OL_FLOAT32, 1, three) };
    char path[512];
    int status;
    snprintf(path, sizeof path, "%s/out", (char *)*state);
    pid_t child = fork();
    if (child == 0) {
        st_writer *writer;
        st_error error;
        const float data[3] = { 0 };
        if (st_writer_begin(path, &entry, 1, "test", &writer, &error)) {
            raise(SIGTERM);                        /* ends it here, or at the next step where signals are held */
            st_writer_put(writer, 0, data, &error);
            st_writer_abort(writer);
        }
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(count_files(*state), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),
        cmocka_unit_test(header_lengths),
        cmocka_unit_test(truncations),
        cmocka_unit_test(deep_nesting),
        cmocka_unit_test(views),
        cmocka_unit_test(finds_every_name),
        cmocka_unit_test(misaligned_data),
        cmocka_unit_test_setup_teardown(odd_files, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(round_trip, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(failures_leave_nothing, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(only_files_are_replaced, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(ended_in_the_middle, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
