/* The pool is pthreadpool's. */
#include "cpu/pool.h"

#include <pthreadpool.h>

const int pool_available = 1;

pool *pool_create(size_t n_threads)
{
    return (pool *)pthreadpool_create(n_threads);
}

void pool_destroy(pool *p)
{
    pthreadpool_destroy((pthreadpool_t)p);
}

void pool_run(pool *p, size_t n_tasks, ol_task task, void *argument)
{
    pthreadpool_parallelize_1d((pthreadpool_t)p, task, argument, n_tasks, 0);
}
