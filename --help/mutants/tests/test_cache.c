/* The disk cache of compiled kernels: what is written comes back, byte for byte; another key, any damage, and no memory are a
 * miss; many processes may use it at once. */
#include "cache_cases.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

enum { HEAD_BYTES = 32, SUM_BYTES = 16 };

/* ---- Hits and other keys ---- */

static void what_is_written_comes_back(void **state)
{
    (void)state;
    static const size_t sizes[][2] = { { 1, 1 }, { 100, 1 }, { 0, 100 }, { 8191, 8192 }, { 8192, 8193 }, { 200000, 3000000 } };
    text keys[COUNT(sizes)], images[COUNT(sizes)];
    for (size_t i = 0; i < COUNT(sizes); i++) {
        keys[i] = random_text(harness_seed + i, sizes[i][0]);
        images[i] = random_text(harness_seed + 100 + i, sizes[i][1]);
        assert_miss(&keys[i]);
        cache_write(&keys[i], &images[i]);
        assert_hit(&keys[i], &images[i]);
    }
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_hit(&keys[i], &images[i]);
        assert_int_equal(mode_of(path_of(&keys[i])), 0600);
    }
    assert_int_equal(list().n_sound, COUNT(sizes));
    cache_write(&keys[0], &images[1]);                       /* another image of the same key takes the place of the first */
    assert_hit(&keys[0], &images[1]);
    assert_int_equal(list().n_sound, COUNT(sizes));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        text_free(&keys[i]);
        text_free(&images[i]);
    }
}

static void an_empty_image_is_none(void **state)
{
    (void)state;
    static unsigned char bytes[4000];
    text key = key_of("empty"), nothing = empty_text(), image = text_from("image");
    cache_write(&key, &nothing);
    assert_miss(&key);
    cache_write(&key, &image);
    size_t n = get_file(path_of(&key), bytes, sizeof bytes) - image.n;
    memset(bytes + 24, 0, 8);
    XXH128_canonicalFromHash((XXH128_canonical_t *)(bytes + n - SUM_BYTES), XXH3_128bits(bytes, n - SUM_BYTES));
    put_file(path_of(&key), bytes, n);
    assert_miss(&key);
    cache_write(&key, &nothing);
    assert_int_equal(list().n_damaged, 1);
    text_free(&key);
    text_free(&image);
}

static void another_key_misses(void **state)
{
    (void)state;
    text key = random_text(harness_seed, 300), image = text_from("image");
    cache_write(&key, &image);
    for (size_t i = 0; i < key.n; i++) {
        key.bytes[i] ^= 1;
        assert_miss(&key);
        key.bytes[i] ^= 1;
    }
    key.n--;
    assert_miss(&key);
    key.n++;
    assert_hit(&key, &image);
    text_add_bytes(&key, "", 1);
    assert_miss(&key);
    text_free(&key);
    text_free(&image);
}

/* As if two keys had one hash. */
static void another_key_of_the_same_name_misses(void **state)
{
    (void)state;
    text first = key_of("first"), second = key_of("other"), image = text_from("image"), image2 = text_from("another image");
    cache_write(&first, &image);
    assert_int_equal(rename(path_of(&first), path_of(&second)), 0);
    assert_miss(&first);
    assert_miss(&second);
    assert_int_equal(list().n_damaged, 1);
    cache_write(&second, &image2);
    assert_hit(&second, &image2);
    text_free(&first);
    text_free(&second);
    text_free(&image);
    text_free(&image2);
}

static void broken_texts_are_not_used(void **state)
{
    (void)state;
    text key = key_of("k"), image = text_from("image"), out = text_from("out");
    key.broken = 1;
    cache_write(&key, &image);
    assert_miss(&key);
    assert_false(exists(folder));
    key.broken = 0;
    image.broken = 1;
    cache_write(&key, &image);
    assert_miss(&key);
    image.broken = 0;
    cache_write(&key, &image);
    assert_hit(&key, &image);
    key.broken = 1;
    assert_miss(&key);
    key.broken = 0;
    out.broken = 1;
    assert_int_equal(cache_read(&key, &out), 0);
    assert_true(out.broken);
    assert_int_equal(out.n, 3);
    text_free(&key);
    text_free(&image);
    text_free(&out);
}

/* ---- Damage ---- */

static void put_byte(const char *path, size_t offset, unsigned char byte)
{
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
    assert_int_equal(close(fd), 0);
}

static void any_damage_misses(void **state)
{
    (void)state;
    static unsigned char good[4000], zeros[4000];
    text key = key_of("damaged"), image = random_text(harness_seed, 200);
    cache_write(&key, &image);
    const char *path = path_of(&key);
    size_t n = get_file(path, good, sizeof good);
    assert_int_equal(n, cache_entry_size(&key, &image));
    for (size_t i = 0; i < n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            put_byte(path, i, good[i] ^ (unsigned char)(1 << bit));
            assert_miss(&key);
        }
        assert_int_equal(list().n_damaged, 1);
        put_byte(path, i, good[i]);
    }
    assert_hit(&key, &image);
    for (size_t shorter = n; shorter-- > 0;) {
        assert_int_equal(truncate(path, (off_t)shorter), 0);
        assert_miss(&key);
        assert_int_equal(list().n_damaged, 1);
    }
    put_file(path, good, n);
    assert_hit(&key, &image);
    for (size_t more = 0; more < 40; more++) {
        put_byte(path, n + more, (unsigned char)more);
        assert_miss(&key);
        assert_int_equal(list().n_damaged, 1);
    }
    put_file(path, zeros, n);
    assert_miss(&key);
    cache_write(&key, &image);                               /* a damaged entry is replaced */
    assert_hit(&key, &image);
    assert_int_equal(list().n_sound, 1);
    text_free(&key);
    text_free(&image);
}

static void put_number(unsigned char *bytes, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
}

/* A checksum that is right for what the file says: only the checks of its lengths and version are between it and a hit. */
static void lying_heads_miss(void **state)
{
    (void)state;
    static unsigned char bytes[4000];
    text key = key_of("lying"), image = random_text(harness_seed, 200);
    cache_write(&key, &image);
    size_t n = get_file(path_of(&key), bytes, sizeof bytes);
    const uint64_t k = key.n, m = image.n;
    const struct { uint64_t version, n_key, n_image; } rows[] = {
        { 2, k, m }, { 0, k, m }, { 1ull << 32 | 1, k, m },
        { 1, UINT64_MAX, m }, { 1, k, UINT64_MAX }, { 1, UINT64_MAX, UINT64_MAX }, { 1, k, 1ull << 40 },
        { 1, UINT64_MAX - 15, k + m + 16 }, { 1, 1ull << 63, (1ull << 63) + k + m },       /* the right sum, mod 2^64 */
        { 1, k + 1, m - 1 }, { 1, k - 1, m + 1 }, { 1, 0, k + m }, { 1, k + m, 0 },
        { 1, k, m + 1 }, { 1, k, m - 1 }, { 1, k, 0 }, { 1, 0, 0 }, { 1, k, m - SUM_BYTES }, { 1, k, m + SUM_BYTES },
        { 1, k, m },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        put_number(bytes + 8, rows[i].version);
        put_number(bytes + 16, rows[i].n_key);
        put_number(bytes + 24, rows[i].n_image);
        XXH128_canonicalFromHash((XXH128_canonical_t *)(bytes + n - SUM_BYTES), XXH3_128bits(bytes, n - SUM_BYTES));
        put_file(path_of(&key), bytes, n);
        if (i + 1 < COUNT(rows))
            assert_miss(&key);
        else
            assert_hit(&key, &image);
        assert_int_equal(list().n_sound, i + 1 == COUNT(rows));
    }
    text_free(&key);
    text_free(&image);
}

static void entries_of_any_size_are_bounded(void **state)
{
    (void)state;
    static unsigned char bytes[4000];
    text key = key_of("large"), image = text_from("image");
    cache_write(&key, &image);
    size_t n = get_file(path_of(&key), bytes, sizeof bytes);
    put_number(bytes + 24, CACHE_ENTRY_MAX);                 /* a file of this size: all zeros, and sparse */
    put_file(path_of(&key), bytes, n - SUM_BYTES);
    assert_int_equal(truncate(path_of(&key), (off_t)(HEAD_BYTES + key.n + CACHE_ENTRY_MAX + SUM_BYTES)), 0);
    assert_miss(&key);
    assert_int_equal(truncate(path_of(&key), (off_t)1 << 30), 0);
    assert_miss(&key);
    assert_int_equal(ol_cache_clear(NULL, NULL, NULL), OL_OK);

    text huge = { .allocator = memory_allocator(NULL), .bytes = calloc(1, CACHE_ENTRY_MAX), .n = CACHE_ENTRY_MAX };
    assert_non_null(huge.bytes);
    cache_write(&key, &huge);
    assert_miss(&key);
    huge.n -= HEAD_BYTES + SUM_BYTES + key.n;                /* just fits */
    cache_write(&key, &huge);
    assert_hit(&key, &huge);
    setenv("ONELAUNCH_CACHE_MIB", "80", 1);                  /* 60 remain after eviction: it would evict itself, and all others */
    text other = key_of("other");
    cache_write(&other, &huge);
    assert_miss(&other);
    assert_hit(&key, &huge);
    free(huge.bytes);
    text_free(&key);
    text_free(&other);
    text_free(&image);
}

/* ---- Processes, and memory ---- */

enum { PROCESSES = 8, ROUNDS = 100 };

/* All ask for one key; a miss is filled; now and then someone clears. */
static int share_one_key(int process, const text *key, const text *image)
{
    for (int round = 0; round < ROUNDS; round++) {
        text got = empty_text();
        if (cache_read(key, &got)) {
            if (got.n != image->n || memcmp(got.bytes, image->bytes, got.n) != 0)
                return 1;
        } else {
            if (got.n || got.broken)
                return 2;
            cache_write(key, image);
        }
        text_free(&got);
        if (round % PROCESSES == process && ol_cache_clear(NULL, NULL, NULL) != OL_OK)
            return 3;
    }
    return 0;
}

/* More keys than the bound has room for, so that processes evict each other's entries. */
static int share_a_small_folder(int process, const text *key, const text *image)
{
    uint64_t seed = (uint64_t)process;
    (void)key;
    for (int round = 0; round < ROUNDS; round++) {
        text k = empty_text(), mine = empty_text(), got = empty_text();
        uint64_t which = random_below(&seed, 20);
        counts c = { 0 };
        text_add(&k, "key %d", (int)which);
        text_add_bytes(&mine, image->bytes + which, image->n - 20);
        if (!cache_read(&k, &got))
            cache_write(&k, &mine);
        else if (got.n != mine.n || memcmp(got.bytes, mine.bytes, got.n) != 0)
            return 1;
        if (round % 10 == 0 && (ol_cache_list(count_entry, &c, NULL) != OL_OK || c.n_damaged))
            return 2;
        text_free(&k);
        text_free(&mine);
        text_free(&got);
    }
    return 0;
}

static void run_processes(int (*part)(int process, const text *key, const text *image), const text *key, const text *image)
{
    pid_t children[PROCESSES];
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            _exit(part(i, key, image));
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
}

static void processes_share_a_folder(void **state)
{
    (void)state;
    text key = key_of("shared"), image = random_text(harness_seed, 150000);
    run_processes(share_one_key, &key, &image);
    assert_int_equal(list().n_damaged, 0);
    cache_write(&key, &image);
    assert_hit(&key, &image);
    setenv("ONELAUNCH_CACHE_MIB", "1", 1);
    run_processes(share_a_small_folder, &key, &image);
    cache_write(&key, &image);
    counts c = list();
    assert_int_equal(c.n_damaged, 0);
    assert_true(c.n_sound >= 1 && c.n_sound <= 7);
    uint64_t n_removed;
    ol_error error;
    assert_ok(ol_cache_clear(&n_removed, NULL, &error), &error);
    assert_int_equal(n_removed, c.n_sound);                  /* no temporary file is left */
    text_free(&key);
    text_free(&image);
}

typedef struct ledger {
    size_t n_calls, fail_at, n_blocks, n_bytes;
} ledger;

static void *ledger_allocate(void *user, size_t n_bytes)
{
    ledger *l = user;
    if (++l->n_calls == l->fail_at)
        return NULL;
    l->n_blocks++;
    l->n_bytes += n_bytes;
    return aligned_alloc(64, (n_bytes + 63) / 64 * 64);
}

static void ledger_free(void *user, void *pointer, size_t n_bytes)
{
    ledger *l = user;
    l->n_blocks--;
    l->n_bytes -= n_bytes;
    free(pointer);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    text key = key_of("k"), other = key_of("other"), image = random_text(harness_seed, 50000);
    ledger books = { 0 };
    const ol_allocator counted = { ledger_allocate, ledger_free, &books };
    size_t n_reads = 0, n_writes = 0;
    cache_write(&key, &image);
    for (size_t k = 0; k == 0 || k <= n_reads; k++) {        /* at 0 none fails, and they are counted */
        text got = { .allocator = counted };
        books = (ledger){ .fail_at = k };
        assert_int_equal(cache_read(&key, &got), k == 0);
        assert_false(got.broken);
        assert_int_equal(got.n, k == 0 ? image.n : 0);
        n_reads = k == 0 ? books.n_calls : n_reads;
        text_free(&got);
        assert_true(books.n_blocks == 0 && books.n_bytes == 0);
    }
    for (size_t k = 0; k == 0 || k <= n_writes; k++) {
        books = (ledger){ .fail_at = k };
        text watched = { .allocator = counted, .bytes = other.bytes, .n = other.n };
        assert_ok(ol_cache_clear(NULL, NULL, NULL), NULL);
        cache_write(&watched, &image);
        n_writes = k == 0 ? books.n_calls : n_writes;
        assert_true(books.n_blocks == 0 && books.n_bytes == 0);
        assert_hit(&other, &image);
    }
    assert_true(n_reads > 2 && n_writes >= 2);
    text_free(&key);
    text_free(&other);
    text_free(&image);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CACHE_TEST(what_is_written_comes_back), CACHE_TEST(an_empty_image_is_none), CACHE_TEST(another_key_misses),
        CACHE_TEST(another_key_of_the_same_name_misses), CACHE_TEST(broken_texts_are_not_used),
        CACHE_TEST(any_damage_misses), CACHE_TEST(lying_heads_miss), CACHE_TEST(entries_of_any_size_are_bounded),
        CACHE_TEST(processes_share_a_folder), CACHE_TEST(every_allocation_may_fail),
    };
    return HARNESS_RUN(argc, argv, tests);
}
