/* A file of the cache: a key and the machine code made of it.
 *
 *     "olkernel"            8 bytes
 *     format version        8 bytes, as all numbers little-endian
 *     bytes of key, image   8 bytes each
 *     key, image
 *     checksum              XXH3, 128 bits, over all of the above; big-endian, which is xxHash's canonical form
 *
 * The whole key is kept and compared, so that no two kernels are ever mistaken for each other, whatever their hashes. The
 * checksum finds damage (a full disk, a crash, a bad block); against someone who means harm stand the owner and mode, of the
 * file and of its folder. A file appears complete, by renaming, and is never changed but in its time of last use. */
#ifndef OL_CUDA_CACHE_ENTRY_H
#define OL_CUDA_CACHE_ENTRY_H

#include "cuda/cache_folder.h"
#include "cuda/text.h"

#define CACHE_ENTRY_MAX ((uint64_t)64 << 20)         /* bytes of a file; larger ones are neither read nor written */

void cache_entry_name(const text *key, char name[CACHE_NAME]);

/* 1: the file holds this key; its image is appended, and it counts as used now. 0: `image` is as before. */
int cache_entry_read(int folder, const char *name, const text *key, text *image);

/* Whether the file would be read for the key that it holds; if so, the start of that key. */
#define CACHE_HEAD 1024
typedef struct cache_head {
    char bytes[CACHE_HEAD];
    size_t n;
} cache_head;
int cache_entry_check(int folder, const char *name, cache_head *head);

uint64_t cache_entry_size(const text *key, const text *image);
/* Writes an entry, in place of one that is there. 0 where that failed: nothing is left behind. */
int cache_entry_write(int folder, const text *key, const text *image);

#endif
