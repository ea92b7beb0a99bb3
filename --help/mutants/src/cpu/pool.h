/* Threads of the library's own. Two forms of it, chosen by the build: pool_pthreadpool.c, and pool_none.c for hosts that bring
 * their own threads and want no dependency. */
#ifndef OL_CPU_POOL_H
#define OL_CPU_POOL_H

#include "onelaunch.h"

typedef struct pool pool;

/* Whether this build has threads of its own; if not, none of the rest is called. */
extern const int pool_available;
/* n_threads working at once, the caller's among them; NULL when they cannot be had. */
pool *pool_create(size_t n_threads);
void pool_destroy(pool *p);
void pool_run(pool *p, size_t n_tasks, ol_task task, void *argument);       /* one caller at a time */

#endif
