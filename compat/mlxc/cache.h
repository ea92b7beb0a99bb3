/* The plans of compiled closures and of single operations, by content: the bytes of a key. Shared by all threads, and bounded. */
#ifndef MLXC_CACHE_H
#define MLXC_CACHE_H

#include "plan.h"

#define MLXC_CACHE_BOUND 1024

/* A key's first 8 bytes: the serial of the closure's function, which no other ever has; 0 for operations. */

/* A reference to the plan; NULL: there is none. */
mlxc_plan *mlxc_cache_find(const void *key, size_t n_bytes);
/* Keeps a reference to the plan, if there is memory for that and no plan has the key yet; removes what was used longest ago
 * where the bound is passed. */
void mlxc_cache_add(const void *key, size_t n_bytes, mlxc_plan *p);
/* Removes the plans of a function, or all. */
void mlxc_cache_forget(uint64_t serial);
void mlxc_cache_clear(void);

#endif
