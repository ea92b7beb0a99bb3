/* The folder of the cache: where it is, whether it can be trusted, and which of its files are the cache's.
 *
 * Machine code that is read from it runs, so a folder that someone else could have written to is not used at all, neither read
 * nor written. Once it is open and found to be ours, everything goes through its descriptor: what its path names later does not
 * matter. */
#ifndef OL_CUDA_CACHE_FOLDER_H
#define OL_CUDA_CACHE_FOLDER_H

#include "memory.h"

/* Its path, in two parts so that no memory is needed; 0 where the environment names none, or turns the cache off. */
typedef struct cache_path {
    const char *start, *end;
} cache_path;
int cache_folder_path(cache_path *path);

/* A descriptor of the folder, or -1 with errno: ENOENT where there is none (or no path), EPERM where it is not safe. `create`
 * makes it, with mode 0700, and its parents. */
int cache_folder_open(int create);

/* Bytes that all entries together may have. */
uint64_t cache_folder_bound(void);

/* An entry is named by its key's hash, 32 hexadecimal digits and ".kernel"; before it is complete, by that hash, 16 more digits
 * and ".temp". Files of other names are not the cache's, and never touched. */
#define CACHE_NAME 64
#define CACHE_ENTRY_FORMAT "%016llx%016llx.kernel"
#define CACHE_TEMPORARY_FORMAT "%016llx%016llx.%016llx.temp"

typedef struct cache_file {
    char name[CACHE_NAME];
    int is_temporary;
    int is_plain;                        /* a regular file */
    int64_t seconds, nanoseconds;        /* last used, as the modification time */
    uint64_t n_bytes;
} cache_file;

/* The cache's files, the least recently used first: items[order[0 .. n)]. */
typedef struct cache_files {
    ol_allocator allocator;
    cache_file *items;
    size_t capacity;
    uint32_t *order, n;
} cache_files;

/* Fills a list that is empty but for its allocator. 0 or an errno: ENOMEM, or what reading the folder gave. Free it in any case. */
int cache_files_find(int folder, cache_files *files);
void cache_files_free(cache_files *files);

#endif
