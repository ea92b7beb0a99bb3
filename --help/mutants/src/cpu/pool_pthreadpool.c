/* The pool is pthreadpool's. It does not look at what pthread_create returns and would wait for ever for a thread that could not
 * be started, so we first see whether as many threads can be had at once. */
#include "cpu/pool.h"

#include <pthread.h>
#include <pthreadpool.h>
#include <signal.h>

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

/* The host's signals are for the host's threads, which may have blocked them to look at them in their own time: one of ours
 * would take them. Threads inherit the mask of the one that starts them. What a thread does to itself stays its own. */
static void block_signals(sigset_t *host)
{
    static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF };
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, host);
}

pool *pool_create(size_t n_threads)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    sigset_t host;
    block_signals(&host);
    pthread_mutex_lock(&gate);
    int ok = try_threads(&gate, n_threads - 1);             /* the caller's is one of the pool's */
    pthread_mutex_destroy(&gate);
    pool *p = ok ? (pool *)pthreadpool_create(n_threads) : NULL;
    pthread_sigmask(SIG_SETMASK, &host, NULL);
    return p;
}

void pool_destroy(pool *p)
{
    pthreadpool_destroy((pthreadpool_t)p);
}

void pool_run(pool *p, size_t n_tasks, ol_task task, void *argument)
{
    pthreadpool_parallelize_1d((pthreadpool_t)p, task, argument, n_tasks, 0);
}
