/* A build without threads of its own: replays run on the host's parallel_for, or on the caller's thread. */
#include "cpu/pool.h"

const int pool_available = 0;

pool *pool_create(size_t n_threads)
{
    (void)n_threads;
    return NULL;
}

void pool_destroy(pool *p)
{
    (void)p;
}

void pool_run(pool *p, size_t n_tasks, ol_task task, void *argument)
{
    (void)p;
    for (size_t i = 0; i < n_tasks; i++)
        task(argument, i);
}
