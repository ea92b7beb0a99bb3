/* Tasks on several threads: the host's parallel_for if it gave one, else a pool of our own (pthreadpool), made with the device
 * so that a replay starts and allocates nothing. The pool runs one loop at a time; a replay that finds it busy, or that runs in
 * a forked child, where the pool's threads do not exist, does its tasks on its own thread instead of waiting. */
#include "cpu/cpu.h"
#include "cpu/pool.h"
#include "status.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <unistd.h>

struct cpu_threads {
    ol_allocator allocator;
    ol_parallel_for parallel_for;
    void *user;
    pool *pool;                         /* NULL: no threads of our own */
    pid_t owner;
    size_t count;
    atomic_flag busy;
};

static size_t available_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (size_t)CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (size_t)n : 1;
}

ol_status cpu_threads_create(const ol_allocator *allocator, const ol_cpu_options *options, cpu_threads **out, ol_error *error)
{
    if (options->n_threads < 0 || options->n_threads > 4096)
        return fail(error, OL_ERROR_ARGUMENT, "device cpu", "n_threads is %d; expected 0 to 4096", (int)options->n_threads);
    cpu_threads *t = memory_take(allocator, sizeof *t);
    if (!t)
        return fail(error, OL_ERROR_MEMORY, "device cpu", "no memory for a device");
    *t = (cpu_threads){ .allocator = *allocator, .parallel_for = options->parallel_for, .user = options->parallel_user, .owner = getpid() };
    atomic_flag_clear(&t->busy);
    size_t count = options->n_threads ? (size_t)options->n_threads : available_cpus();
    t->count = t->parallel_for || pool_available ? count : 1;
    if (t->count > 1 && !t->parallel_for) {
        t->pool = pool_create(count);
        if (!t->pool) {
            memory_give(allocator, t, sizeof *t);
            return fail(error, OL_ERROR_DEVICE, "device cpu", "could not start %zu threads; n_threads 1 needs none", count);
        }
    }
    *out = t;
    return OL_OK;
}

void cpu_threads_destroy(cpu_threads *t)
{
    if (!t)
        return;
    ol_allocator allocator = t->allocator;
    if (t->pool && t->owner == getpid())          /* a forked child has no threads to end, and would wait for them */
        pool_destroy(t->pool);
    memory_give(&allocator, t, sizeof *t);
}

size_t cpu_threads_count(const cpu_threads *t)
{
    return t->count;
}

void cpu_threads_run(cpu_threads *t, size_t n_tasks, ol_task task, void *argument)
{
    if (t->parallel_for)
        t->parallel_for(t->user, n_tasks, task, argument);
    else if (t->pool && t->owner == getpid() && !atomic_flag_test_and_set_explicit(&t->busy, memory_order_acquire)) {
        pool_run(t->pool, n_tasks, task, argument);
        atomic_flag_clear_explicit(&t->busy, memory_order_release);
    } else
        for (size_t i = 0; i < n_tasks; i++)
            task(argument, i);
}
