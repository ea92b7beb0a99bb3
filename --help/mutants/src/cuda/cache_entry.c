/* See cache_entry.h. Nothing here allocates, but for the image that is read: files go through a small buffer. */
#define XXH_INLINE_ALL
#include "cuda/cache_entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum { FORMAT_VERSION = 1, MAGIC_BYTES = 8, HEAD_BYTES = MAGIC_BYTES + 3 * 8, SUM_BYTES = 16, PIECE = 8192 };
static const char magic[] = "olkernel";

static void number_put(unsigned char *bytes, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
}

static uint64_t number_get(const unsigned char *bytes)
{
    uint64_t number = 0;
    for (int i = 8; i-- > 0;)
        number = number << 8 | bytes[i];
    return number;
}

static void name_of(XXH128_hash_t hash, char name[CACHE_NAME])
{
    snprintf(name, CACHE_NAME, CACHE_ENTRY_FORMAT, (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

void cache_entry_name(const text *key, char name[CACHE_NAME])
{
    name_of(XXH3_128bits(key->bytes, key->n), name);
}

/* ---- Reading ---- */

typedef struct reader {
    int fd;
    size_t n_key, n_image;
    XXH3_state_t sum;
} reader;

/* Exactly n bytes, also into the checksum. */
static int take(reader *r, void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = read(r->fd, (char *)bytes + done, n - done);
        if (got == 0 || (got < 0 && errno != EINTR))
            return 0;
        done += got > 0 ? (size_t)got : 0;
    }
    XXH3_128bits_update(&r->sum, bytes, n);
    return 1;
}

static int is_trusted(int fd, uint64_t *n_bytes)
{
    struct stat s;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid() || s.st_mode & (S_IWGRP | S_IWOTH))
        return 0;
    *n_bytes = (uint64_t)s.st_size;
    return s.st_size >= HEAD_BYTES + SUM_BYTES && *n_bytes <= CACHE_ENTRY_MAX;
}

static int take_head(reader *r, uint64_t n_bytes)
{
    unsigned char head[HEAD_BYTES];
    uint64_t rest = n_bytes - HEAD_BYTES - SUM_BYTES;
    if (!take(r, head, sizeof head) || memcmp(head, magic, MAGIC_BYTES) != 0 || number_get(head + MAGIC_BYTES) != FORMAT_VERSION)
        return 0;
    uint64_t n_key = number_get(head + MAGIC_BYTES + 8), n_image = number_get(head + MAGIC_BYTES + 16);
    if (n_key > rest || n_image != rest - n_key || n_image == 0)
        return 0;
    r->n_key = (size_t)n_key;
    r->n_image = (size_t)n_image;
    return 1;
}

/* O_NONBLOCK: what has the name may be a pipe. */
static int reader_open(reader *r, int folder, const char *name)
{
    uint64_t n_bytes;
    r->fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (r->fd < 0)
        return 0;
    XXH3_128bits_reset(&r->sum);
    if (is_trusted(r->fd, &n_bytes) && take_head(r, n_bytes))
        return 1;
    close(r->fd);
    return 0;
}

static int take_sum(reader *r)
{
    XXH128_canonical_t expected, stored;
    XXH128_canonicalFromHash(&expected, XXH3_128bits_digest(&r->sum));
    return take(r, &stored, SUM_BYTES) && memcmp(&stored, &expected, SUM_BYTES) == 0;
}

static int take_key(reader *r, const text *key)
{
    char piece[PIECE];
    if (r->n_key != key->n)
        return 0;
    for (size_t done = 0; done < key->n;) {
        size_t n = key->n - done < PIECE ? key->n - done : PIECE;
        if (!take(r, piece, n) || memcmp(piece, key->bytes + done, n) != 0)
            return 0;
        done += n;
    }
    return 1;
}

static int take_image(reader *r, text *image)
{
    char piece[PIECE];
    for (size_t done = 0; done < r->n_image;) {
        size_t n = r->n_image - done < PIECE ? r->n_image - done : PIECE;
        if (!take(r, piece, n))
            return 0;
        if (image)
            text_add_bytes(image, piece, n);
        done += n;
    }
    return !image || !image->broken;
}

int cache_entry_read(int folder, const char *name, const text *key, text *image)
{
    reader r;
    size_t n_before = image->n;
    if (image->broken || !reader_open(&r, folder, name))
        return 0;
    int hit = take_key(&r, key) && take_image(&r, image) && take_sum(&r);
    if (hit) {
        futimens(r.fd, NULL);                    /* where that fails, it is evicted sooner */
    } else {
        image->n = n_before;
        image->broken = 0;                       /* no memory for a copy of it: a miss */
        if (image->bytes)
            image->bytes[n_before] = 0;
    }
    close(r.fd);
    return hit;
}

int cache_entry_check(int folder, const char *name, cache_head *head)
{
    reader r;
    XXH3_state_t hash;
    char piece[PIECE], expected[CACHE_NAME];
    int sound = 1;
    if (!reader_open(&r, folder, name))
        return 0;
    XXH3_128bits_reset(&hash);
    head->n = r.n_key < CACHE_HEAD ? r.n_key : CACHE_HEAD;
    for (size_t done = 0; sound && done < r.n_key;) {
        size_t n = r.n_key - done < PIECE ? r.n_key - done : PIECE;
        sound = take(&r, piece, n);
        if (sound && done == 0)
            memcpy(head->bytes, piece, head->n);
        if (sound)
            XXH3_128bits_update(&hash, piece, n);
        done += n;
    }
    name_of(XXH3_128bits_digest(&hash), expected);
    sound = sound && strcmp(name, expected) == 0 && take_image(&r, NULL) && take_sum(&r);
    close(r.fd);
    return sound;
}

/* ---- Writing ---- */

uint64_t cache_entry_size(const text *key, const text *image)
{
    return (uint64_t)HEAD_BYTES + key->n + image->n + SUM_BYTES;
}

/* A file that no one else writes: another name is taken if this one exists. */
static int create_temporary(int folder, XXH128_hash_t hash, char name[CACHE_NAME])
{
    enum { ATTEMPTS = 16 };
    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct timespec now = { 0, 0 };
        clock_gettime(CLOCK_REALTIME, &now);
        const uint64_t source[] = { (uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, (uint64_t)getpid(), (uintptr_t)name, attempt };
        snprintf(name, CACHE_NAME, CACHE_TEMPORARY_FORMAT, (unsigned long long)hash.high64, (unsigned long long)hash.low64,
                 (unsigned long long)XXH3_64bits(source, sizeof source));
        int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static int put(int fd, XXH3_state_t *sum, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = write(fd, (const char *)bytes + done, n - done);
        if (put == 0 || (put < 0 && errno != EINTR))
            return 0;
        done += put > 0 ? (size_t)put : 0;
    }
    XXH3_128bits_update(sum, bytes, n);
    return 1;
}

static int put_entry(int fd, const text *key, const text *image)
{
    unsigned char head[HEAD_BYTES];
    XXH3_state_t sum;
    XXH128_canonical_t canonical;
    memcpy(head, magic, MAGIC_BYTES);
    number_put(head + MAGIC_BYTES, FORMAT_VERSION);
    number_put(head + MAGIC_BYTES + 8, key->n);
    number_put(head + MAGIC_BYTES + 16, image->n);
    XXH3_128bits_reset(&sum);
    if (!put(fd, &sum, head, sizeof head) || !put(fd, &sum, key->bytes, key->n) || !put(fd, &sum, image->bytes, image->n))
        return 0;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&sum));
    return put(fd, &sum, &canonical, SUM_BYTES);
}

/* A process that writes beyond its limit on the size of files is killed by SIGXFSZ. */
static int is_within_limit(uint64_t n_bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || n_bytes <= limit.rlim_cur);
}

int cache_entry_write(int folder, const text *key, const text *image)
{
    XXH128_hash_t hash = XXH3_128bits(key->bytes, key->n);
    uint64_t n_bytes = cache_entry_size(key, image);
    char name[CACHE_NAME], temporary[CACHE_NAME];
    if (n_bytes > CACHE_ENTRY_MAX || !is_within_limit(n_bytes))
        return 0;
    int fd = create_temporary(folder, hash, temporary);
    if (fd < 0)
        return 0;
    name_of(hash, name);
    int written = put_entry(fd, key, image);
    written = close(fd) == 0 && written;         /* some file systems say only here that there was no room */
    written = written && renameat(folder, temporary, folder, name) == 0;
    if (!written)
        unlinkat(folder, temporary, 0);
    return written;
}
