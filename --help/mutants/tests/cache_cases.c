/* See cache_cases.h. */
#include "cache_cases.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- A folder of its own for each test ---- */

char scratch[PATH_MAX - 600], folder[PATH_MAX - 300];

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *place)
{
    (void)s, (void)kind, (void)place;
    return remove(path);
}

int cache_set_up(void **state)
{
    char here[PATH_MAX - 700];
    (void)state;
    umask(022);
    if (!getcwd(here, sizeof here))
        return -1;
    snprintf(scratch, sizeof scratch, "%s/test-cache-XXXXXX", here);
    if (!mkdtemp(scratch))
        return -1;
    snprintf(folder, sizeof folder, "%s/cache", scratch);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("ONELAUNCH_CACHE_MIB");
    return setenv("HOME", scratch, 1) | setenv("ONELAUNCH_CACHE", folder, 1);
}

int cache_tear_down(void **state)
{
    (void)state;
    chmod(folder, 0700);
    return nftw(scratch, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *in_scratch(const char *name)
{
    static char paths[4][PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", scratch, name);
    return path;
}

const char *in_folder(const char *name)
{
    char inner[200];
    snprintf(inner, sizeof inner, "cache/%s", name);
    return in_scratch(inner);
}

int exists(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0;
}

mode_t mode_of(const char *path)
{
    struct stat s;
    assert_int_equal(lstat(path, &s), 0);
    return s.st_mode & 07777;
}

void set_age(const char *path, long seconds)
{
    const struct timespec times[2] = { { time(NULL) - seconds, 0 }, { time(NULL) - seconds, 0 } };
    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

void put_file(const char *path, const void *bytes, size_t n)
{
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, n, stream), n);
    assert_int_equal(fclose(stream), 0);
}

size_t get_file(const char *path, unsigned char *bytes, size_t room)
{
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    size_t n = fread(bytes, 1, room, stream);
    assert_true(n < room);
    fclose(stream);
    return n;
}

/* ---- Keys and images ---- */

text empty_text(void)
{
    return (text){ .allocator = memory_allocator(NULL) };
}

text text_from(const char *bytes)
{
    text t = empty_text();
    text_add_bytes(&t, bytes, strlen(bytes));
    return t;
}

text random_text(uint64_t seed, size_t n)
{
    text t = empty_text();
    for (size_t i = 0; i < n; i++) {
        char byte = (char)random_next(&seed);
        text_add_bytes(&t, &byte, 1);
    }
    return t;
}

text key_of(const char *kernel)
{
    text t = empty_text();
    text_add(&t, "onelaunch 1.2.3\nnvrtc 13.0\narchitecture sm_90\nkernel %s\nsource\n", kernel);
    return t;
}

const char *path_of(const text *key)
{
    char name[CACHE_NAME];
    cache_entry_name(key, name);
    return in_folder(name);
}

void assert_hit(const text *key, const text *image)
{
    text got = text_from("before ");
    assert_int_equal(cache_read(key, &got), 1);
    assert_int_equal(got.n, 7 + image->n);
    assert_memory_equal(got.bytes, "before ", 7);
    if (image->n)
        assert_memory_equal(got.bytes + 7, image->bytes, image->n);
    assert_int_equal(got.bytes[got.n], 0);
    text_free(&got);
}

void assert_miss(const text *key)
{
    text got = text_from("before ");
    assert_int_equal(cache_read(key, &got), 0);
    assert_int_equal(got.n, 7);
    assert_string_equal(got.bytes, "before ");
    assert_false(got.broken);
    text_free(&got);
    assert_int_equal(cache_read(key, &got), 0);
    assert_int_equal(got.n, 0);
    text_free(&got);
}

int count_entry(void *user, const ol_cache_entry *entry)
{
    counts *c = user;
    int n = c->n_sound + c->n_damaged;
    if (n < 32)
        snprintf(c->order[n], sizeof c->order[n], "%.15s", entry->kernel);
    entry->is_sound ? c->n_sound++ : c->n_damaged++;
    return c->limit && n + 1 == c->limit;
}

counts list(void)
{
    counts c = { 0 };
    ol_error error;
    assert_ok(ol_cache_list(count_entry, &c, &error), &error);
    return c;
}
