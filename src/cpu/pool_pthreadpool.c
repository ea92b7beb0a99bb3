/* The pool is pthreadpool's. It does not look at what pthread_create returns and would wait for ever for a thread that could not
 * be started, so we first see whether as many threads can be had at once. */
#include "cpu/pool.h"

#include <pthread.h>
#include <pthreadpool.h>

const int pool_available = 1;

static void *wait_for_gate(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Starts n threads that wait at the gate, so that they exist side by side; opens it; ends them. Their handles are on the stack,
 * a batch a call. The gate comes locked. */
static int try_threads(pthread_mutex_t *gate, size_t n)
{
    pthread_t batch[64];
    size_t n_batch = n < 64 ? n : 64, n_started = 0;
    while (n_started < n_batch && pthread_create(&batch[n_started], NULL, wait_for_gate, gate) == 0)
        n_started++;
    int ok = n_started == n_batch && (n == n_batch || try_threads(gate, n - n_batch));
    /* The innermost call, or the one that failed, lets them all go. */
    if (n == n_batch || n_started < n_batch)
        pthread_mutex_unlock(gate);
    while (n_started > 0)
        pthread_join(batch[--n_started], NULL);
    return ok;
}

pool *pool_create(size_t n_threads)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&gate);
    int ok = try_threads(&gate, n_threads - 1);             /* the caller's is one of the pool's */
    pthread_mutex_destroy(&gate);
    return ok ? (pool *)pthreadpool_create(n_threads) : NULL;
}

void pool_destroy(pool *p)
{
    pthreadpool_destroy((pthreadpool_t)p);
}

void pool_run(pool *p, size_t n_tasks, ol_task task, void *argument)
{
    pthreadpool_parallelize_1d((pthreadpool_t)p, task, argument, n_tasks, 0);
}
