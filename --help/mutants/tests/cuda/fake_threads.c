/* Runs a launch of the fake driver: block by block, thread by thread, each thread as a coroutine, which a barrier or a refused
 * access leaves. Without barriers one coroutine runs all threads in turn.
 *
 * The blocks of a cluster take turns: each runs until its threads wait for the others, or are done. There is one place for variables in
 * shared memory, the image's, so the blocks' are exchanged.
 *
 * Compiled without sanitizers, since it changes stacks. */
#include "fake_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 512 * 1024, N_PARAMETERS_MOST = 64 };

/* EXCHANGES: waits for the other lanes of its warp; WAITS_CLUSTER: for all threads of its cluster. */
typedef enum thread_state { THREAD_READY, THREAD_WAITS, THREAD_EXCHANGES, THREAD_WAITS_CLUSTER, THREAD_DONE } thread_state;

enum { WARP = 32 };

typedef struct coroutine {
    ucontext_t place;
    char *stack;
    thread_state state;
    unsigned value, distance;            /* of an exchange */
    int has_arrived;                     /* at the cluster's barrier */
} coroutine;

static coroutine all[CLUSTER_BLOCKS][1024], *coroutines = all[0];        /* their stacks are kept; those of the block that runs */
static coroutine *running;
static ucontext_t scheduler;

static struct {
    CUcontext context;
    const op *launch;
    const fake_image *image;
    void *parameters[N_PARAMETERS_MOST];
    CUresult refused;
} now;

/* Of the blocks of a cluster. */
static struct {
    unsigned n, block, n_barriers;       /* the block that runs, and barriers of the cluster so far */
    int is_done[CLUSTER_BLOCKS];
    char *variables[CLUSTER_BLOCKS];     /* of blocks that do not run */
    size_t n_bytes, capacity;
} cluster;

/* ---- What a thread calls ---- */

static fake_place place_of(unsigned index, fake_place size)
{
    return (fake_place){ index % size.x, index / size.x % size.y, index / size.x / size.y };
}

static void barrier(void)
{
    running->state = THREAD_WAITS;
    swapcontext(&running->place, &scheduler);
}

/* What the lane gives and, after the wait, gets. */
static unsigned exchange(unsigned value, unsigned distance)
{
    running->value = value;
    running->distance = distance;
    running->state = THREAD_EXCHANGES;
    swapcontext(&running->place, &scheduler);
    return running->value;
}

/* ---- Clusters ---- */

/* Notes a violation; the thread runs no more. */
static void refuse(const char *what)
{
    now.refused = fake_violate(LAUNCH_FAILED, "%s", what);
    swapcontext(&running->place, &scheduler);
}

static void cluster_arrive(void)
{
    if (!now.launch->cluster || running->has_arrived)
        refuse(running->has_arrived ? "a thread arrives at the cluster's barrier twice" : "a barrier of a cluster, but there is none");
    running->has_arrived = 1;
}

static void cluster_wait(void)
{
    if (!running->has_arrived)
        refuse("a thread waits at the cluster's barrier without having arrived");
    running->state = THREAD_WAITS_CLUSTER;
    swapcontext(&running->place, &scheduler);
}

static void cluster_store(unsigned place, unsigned bits)
{
    unsigned rank = place >> FAKE_SHARED_BITS, at = place & ((1u << FAKE_SHARED_BITS) - 1);
    if (rank >= cluster.n || (uintptr_t)(now.image->variables + at) % sizeof bits || at + sizeof bits > cluster.n_bytes)
        refuse("a store to shared memory that the cluster does not have");
    if (cluster.is_done[rank])
        refuse("a store to the shared memory of a block that has ended");
    if (cluster.n_barriers == 0)
        refuse("a store to another block's shared memory before it is known to have begun");
    memcpy((rank == cluster.block ? now.image->variables : cluster.variables[rank]) + at, &bits, sizeof bits);
}

/* Makes another block the one that runs. */
static void turn_to(unsigned block, unsigned first)
{
    if (cluster.n > 1 && block != cluster.block) {
        memcpy(cluster.variables[cluster.block], now.image->variables, cluster.n_bytes);
        memcpy(now.image->variables, cluster.variables[block], cluster.n_bytes);
    }
    cluster.block = block;
    coroutines = all[block];
    fake.host.block_index = place_of(first + block, now.launch->grid);
}

static int lies_in(const char *p, unsigned long n_bytes, const void *start, unsigned long size)
{
    return p >= (const char *)start && p + n_bytes <= (const char *)start + size;
}

/* Called before each access: the thread's stack, the image's constants, built-in variables, the parameters, and else the context's
 * memory, aligned. Another access ends the launch. */
static void access_memory(const void *address, unsigned long n_bytes, int stores)
{
    const char *p = address;
    if (lies_in(p, n_bytes, running->stack, STACK_BYTES) || lies_in(p, n_bytes, &fake.host, sizeof fake.host) ||
        lies_in(p, n_bytes, now.image->start, (unsigned long)(now.image->end - now.image->start)) ||
        lies_in(p, n_bytes, now.launch->parameters, now.launch->n_bytes))
        return;
    /* Sizes that are moved at once are powers of two. */
    if ((n_bytes & (n_bytes - 1)) == 0 && n_bytes <= 16 && (uintptr_t)p % n_bytes)
        now.refused = fake_violate(MISALIGNED_ADDRESS, "a kernel %s %lu bytes at %p, which is misaligned",
                                   stores ? "stores" : "loads", n_bytes, address);
    else
        now.refused = fake_check_bytes(now.context, (uint64_t)(uintptr_t)p, n_bytes, stores ? "a kernel stores" : "a kernel loads");
    if (now.refused)
        swapcontext(&running->place, &scheduler);        /* for good */
}

/* ---- Coroutines ---- */

static unsigned n_of(fake_place size) { return size.x * size.y * size.z; }

static void run_thread(void)
{
    now.launch->function->kernel->thread(now.parameters);
    running->state = THREAD_DONE;
}

static void run_all_threads(void)
{
    unsigned n_blocks = n_of(fake.host.grid), n_threads = n_of(fake.host.block);
    for (unsigned b = 0; b < n_blocks; b++) {
        fake.host.block_index = place_of(fake.backwards ? n_blocks - 1 - b : b, fake.host.grid);
        for (unsigned t = 0; t < n_threads; t++) {
            fake.host.thread_index = place_of(fake.backwards ? n_threads - 1 - t : t, fake.host.block);
            now.launch->function->kernel->thread(now.parameters);
        }
    }
    running->state = THREAD_DONE;
}

static int start(coroutine *c, void (*body)(void))
{
    if (!c->stack) {
        void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED)
            return 0;
        c->stack = stack;
    }
    getcontext(&c->place);
    c->place.uc_stack.ss_sp = c->stack;
    c->place.uc_stack.ss_size = STACK_BYTES;
    c->place.uc_link = &scheduler;
    makecontext(&c->place, body, 0);
    c->state = THREAD_READY;
    c->has_arrived = 0;
    return 1;
}

static void resume(coroutine *c)
{
    running = c;
    swapcontext(&scheduler, &c->place);
}

/* Makes ready the warps whose lanes all exchange, by the same distance. Whether there were any. */
static int exchange_warps(unsigned n_threads)
{
    int any = 0;
    for (unsigned first = 0; first < n_threads; first += WARP) {
        coroutine *lanes = &coroutines[first];
        unsigned n = n_threads - first < WARP ? n_threads - first : WARP, n_exchange = 0, given[WARP];
        for (unsigned i = 0; i < n; i++) {
            n_exchange += lanes[i].state == THREAD_EXCHANGES && lanes[i].distance == lanes[0].distance;
            given[i] = lanes[i].value;
        }
        if (n_exchange != n)
            continue;
        any = 1;
        for (unsigned i = 0; i < n; i++) {
            unsigned other = i ^ lanes[i].distance;
            lanes[i].value = other < n ? given[other] : given[i];
            lanes[i].state = THREAD_READY;
        }
    }
    return any;
}

/* The block that runs, from barrier to barrier, until its threads wait for the cluster or are done. All its threads must reach each
 * barrier, or none; and so must all lanes of a warp an exchange. */
static CUresult run_block(unsigned n_threads)
{
    for (;;) {
        unsigned n_waits = 0, n_exchange = 0;
        for (unsigned i = 0; i < n_threads; i++) {
            unsigned t = fake.backwards ? n_threads - 1 - i : i;
            if (coroutines[t].state == THREAD_READY) {
                fake.host.thread_index = place_of(t, fake.host.block);
                resume(&coroutines[t]);
                if (now.refused)
                    return now.refused;
            }
            n_waits += coroutines[t].state == THREAD_WAITS;
            n_exchange += coroutines[t].state == THREAD_EXCHANGES;
        }
        if (exchange_warps(n_threads))
            continue;
        if (n_exchange)
            return fake_violate(LAUNCH_FAILED, "%u threads of a block exchange values without all lanes of their warps", n_exchange);
        if (n_waits == 0)
            return 0;
        if (n_waits != n_threads)
            return fake_violate(LAUNCH_FAILED, "%u of %u threads of a block reach a barrier", n_waits, n_threads);
        for (unsigned t = 0; t < n_threads; t++)
            coroutines[t].state = THREAD_READY;
    }
}

/* Blocks [first, first + cluster.n), from the cluster's barrier to its next, which all threads reach, or none. */
static CUresult run_cluster(unsigned first, unsigned n_threads)
{
    CUresult code = 0;
    for (unsigned b = 0; b < cluster.n; b++) {
        cluster.is_done[b] = 0;
        for (unsigned t = 0; t < n_threads; t++)
            if (!start(&all[b][t], run_thread))
                return OUT_OF_MEMORY;
    }
    cluster.n_barriers = 0;
    for (;;) {
        unsigned n_waits = 0;
        for (unsigned i = 0; i < cluster.n && !code; i++) {
            unsigned b = fake.backwards ? cluster.n - 1 - i : i, n_done = 0;
            turn_to(b, first);
            code = run_block(n_threads);
            for (unsigned t = 0; t < n_threads; t++) {
                n_waits += coroutines[t].state == THREAD_WAITS_CLUSTER;
                n_done += coroutines[t].state == THREAD_DONE;
            }
            cluster.is_done[b] = n_done > 0;
        }
        if (code || n_waits == 0)
            return code;
        if (n_waits != cluster.n * n_threads)
            return fake_violate(LAUNCH_FAILED, "%u of %u threads of a cluster reach its barrier", n_waits, cluster.n * n_threads);
        cluster.n_barriers++;
        for (unsigned b = 0; b < cluster.n; b++)
            for (unsigned t = 0; t < n_threads; t++) {
                all[b][t].state = THREAD_READY;
                all[b][t].has_arrived = 0;
            }
    }
}

/* Room for the blocks' variables, which begin as whatever was there. */
static int prepare_cluster(unsigned n)
{
    cluster.n = n;
    cluster.block = 0;
    cluster.n_bytes = (size_t)(now.image->end - now.image->variables);
    if (n == 1)
        return 1;
    if (cluster.n_bytes > cluster.capacity) {
        for (unsigned b = 0; b < CLUSTER_BLOCKS; b++) {
            char *grown = realloc(cluster.variables[b], cluster.n_bytes);
            if (!grown)
                return 0;
            cluster.variables[b] = grown;
        }
        cluster.capacity = cluster.n_bytes;
    }
    for (unsigned b = 0; b < n; b++)
        memcpy(cluster.variables[b], now.image->variables, cluster.n_bytes);
    return 1;
}

CUresult fake_threads(CUcontext context, const op *launch)
{
    const fake_kernel *k = launch->function->kernel;
    char *at = launch->parameters;
    CUresult code = 0;
    now.context = context;
    now.launch = launch;
    now.image = launch->function->module->image;
    now.refused = 0;
    for (int i = 0; i < k->n_parameters && i < N_PARAMETERS_MOST; i++) {
        now.parameters[i] = at;
        at += (k->sizes[i] + 15) / 16 * 16;
    }
    fake.host = (fake_host){ .grid = launch->grid, .block = launch->block, .barrier = barrier, .exchange = exchange, .access = access_memory,
                              .cluster_arrive = cluster_arrive, .cluster_wait = cluster_wait, .cluster_store = cluster_store };
    if (!now.image->has_barriers) {
        if (!start(&coroutines[0], run_all_threads))
            return OUT_OF_MEMORY;
        resume(&coroutines[0]);
        return now.refused;
    }
    unsigned each = launch->cluster ? launch->cluster : 1, n_clusters = n_of(launch->grid) / each, n_threads = n_of(launch->block);
    if (!prepare_cluster(each))
        return OUT_OF_MEMORY;
    for (unsigned c = 0; c < n_clusters && !code; c++)
        code = run_cluster((fake.backwards ? n_clusters - 1 - c : c) * each, n_threads);
    return code;
}
