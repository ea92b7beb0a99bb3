/* A hash table of entries that are also in a list, the one used last at its head. One mutex guards both. A plan that is removed while
 * others run it goes with its last reference; references are given up outside of the lock, since arrays that a plan captured may
 * have a destructor of the client's. */
#include "cache.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

#define N_BUCKETS 2048

typedef struct entry entry;
struct entry {
    entry *next_in_bucket, *newer, *older;
    mlxc_plan *plan;
    uint64_t hash;
    size_t n_bytes;
    unsigned char key[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *buckets[N_BUCKETS], *newest, *oldest;
static size_t n_entries;

static entry *find(const void *key, size_t n_bytes, uint64_t hash)
{
    entry *e = buckets[hash % N_BUCKETS];
    while (e && (e->hash != hash || e->n_bytes != n_bytes || memcmp(e->key, key, n_bytes) != 0))
        e = e->next_in_bucket;
    return e;
}

static void unlink_use(entry *e)
{
    *(e->newer ? &e->newer->older : &newest) = e->older;
    *(e->older ? &e->older->newer : &oldest) = e->newer;
}

static void link_newest(entry *e)
{
    e->newer = NULL;
    e->older = newest;
    *(newest ? &newest->newer : &oldest) = e;
    newest = e;
}

/* Takes an entry out and puts it on the list of those to be freed. */
static void take_out(entry *e, entry **removed)
{
    entry **link = &buckets[e->hash % N_BUCKETS];
    while (*link != e)
        link = &(*link)->next_in_bucket;
    *link = e->next_in_bucket;
    unlink_use(e);
    n_entries--;
    e->next_in_bucket = *removed;
    *removed = e;
}

/* Without the lock. */
static void free_removed(entry *removed)
{
    while (removed) {
        entry *next = removed->next_in_bucket;
        mlxc_plan_release(removed->plan);
        free(removed);
        removed = next;
    }
}

mlxc_plan *mlxc_cache_find(const void *key, size_t n_bytes)
{
    mlxc_plan *p = NULL;
    uint64_t hash = XXH3_64bits(key, n_bytes);
    pthread_mutex_lock(&lock);
    entry *e = find(key, n_bytes, hash);
    if (e) {
        if (e != newest) {
            unlink_use(e);
            link_newest(e);
        }
        p = mlxc_plan_retain(e->plan);
    }
    pthread_mutex_unlock(&lock);
    return p;
}

void mlxc_cache_add(const void *key, size_t n_bytes, mlxc_plan *p)
{
    entry *removed = NULL, *e = malloc(sizeof *e + n_bytes);
    if (!e)
        return;
    e->plan = mlxc_plan_retain(p);
    e->hash = XXH3_64bits(key, n_bytes);
    e->n_bytes = n_bytes;
    memcpy(e->key, key, n_bytes);
    pthread_mutex_lock(&lock);
    if (find(key, n_bytes, e->hash)) {
        e->next_in_bucket = NULL;
        removed = e;
    } else {
        e->next_in_bucket = buckets[e->hash % N_BUCKETS];
        buckets[e->hash % N_BUCKETS] = e;
        link_newest(e);
        if (++n_entries > MLXC_CACHE_BOUND)
            take_out(oldest, &removed);
    }
    pthread_mutex_unlock(&lock);
    free_removed(removed);
}

static void remove_all(uint64_t serial, int any)
{
    entry *removed = NULL, *older;
    pthread_mutex_lock(&lock);
    for (entry *e = newest; e; e = older) {
        older = e->older;
        if (any || memcmp(e->key, &serial, sizeof serial) == 0)
            take_out(e, &removed);
    }
    pthread_mutex_unlock(&lock);
    free_removed(removed);
}

void mlxc_cache_forget(uint64_t serial)
{
    remove_all(serial, 0);
}

void mlxc_cache_clear(void)
{
    remove_all(0, 1);
}
