/* The disk cache of compiled kernels: what NVRTC made of a text, so that it is compiled once per user and not once per process.
 *
 * It may fail in any way and is then a miss: a cache that is absent, full, unwritable, damaged or someone else's costs a
 * compilation and nothing more. It holds no lock and no state, so that nothing hangs and a forked process may go on using it;
 * any number of processes may read, write and clear it at once. include/onelaunch.h says where it is and how large. */
#ifndef OL_CUDA_CACHE_H
#define OL_CUDA_CACHE_H

#include "cuda/text.h"

/* The key is everything that the machine code depends on, its first lines such as the listing shows (cache_list.c). 1: a hit, the
 * image is appended. 0: a miss, whatever the reason, and `image` is as before. */
int cache_read(const text *key, text *image);

/* Keeps an image that is not empty, or does not. Then removes what was used longest ago, where all entries have passed the bound,
 * until they have three quarters of it, and what a writer that died left behind. */
void cache_write(const text *key, const text *image);

#endif
