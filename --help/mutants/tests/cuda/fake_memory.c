/* The fake driver's memory. Device memory is cut from one reserved range of addresses, so that one call puts all of it out of the
 * host's reach or back into it. Around each allocation lie guard bytes, looked at when it is freed. Host and managed memory
 * are allocations of the C library with the same guards. */
#include "fake_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 256, GUARD = 256, FILL = 0xCD, FREED = 0xDD, GUARD_FILL = 0xFA, LARGE = 256 << 20, FILLED_END = 64 << 10 };

static char *arena;
static size_t arena_bytes, arena_used;   /* used: what was ever given out lies below */
static allocation *list;                 /* by address */
static size_t n_list, list_capacity;
static int n_shown;

/* ---- Reach ---- */

static void protect(int reach)
{
    if (arena_used)
        mprotect(arena, arena_used, reach ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void fake_show(void)
{
    if (n_shown++ == 0 && fake.hides)
        protect(1);
}

void fake_conceal(void)
{
    if (--n_shown == 0 && fake.hides)
        protect(0);
}

int fake_hide(int hides);
int fake_hide(int hides)
{
    fake_lock();
    fake.hides = hides;
    protect(!hides);
    fake_unlock();
    return 0;
}

/* The whole, or of what is very large the ends: the host has no memory for tests of large extents, which touch little of them. */
static void fill(char *start, size_t n_bytes, int byte)
{
    size_t end = n_bytes > LARGE ? FILLED_END : n_bytes;
    memset(start, byte, end);
    memset(start + n_bytes - end, byte, end);
}

/* ---- The list ---- */

/* The first allocation that ends after the address. */
static size_t first_after(uint64_t address)
{
    size_t low = 0, high = n_list;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((uint64_t)(uintptr_t)list[middle].start + list[middle].n_bytes > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

allocation *fake_find(uint64_t address, size_t n_bytes)
{
    size_t i = first_after(address);
    uint64_t start = i < n_list ? (uint64_t)(uintptr_t)list[i].start : 0;
    return i < n_list && start <= address && address - start + n_bytes <= list[i].n_bytes ? &list[i] : NULL;
}

static void insert(const allocation *a)
{
    size_t i = first_after((uint64_t)(uintptr_t)a->start);
    if (n_list == list_capacity) {
        list_capacity = list_capacity ? 2 * list_capacity : 64;
        list = realloc(list, list_capacity * sizeof *list);
        if (!list)
            abort();
    }
    memmove(list + i + 1, list + i, (n_list - i) * sizeof *list);
    list[i] = *a;
    n_list++;
}

size_t fake_memory_leaks(void) { return n_list; }

/* ---- Places ---- */

static size_t rounded(size_t n_bytes) { return (n_bytes + 2 * GUARD + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* A place for n_bytes with their guards: beyond all others, so that freed memory is not used again soon, or else in a gap. */
static char *find_place(size_t n_bytes)
{
    char *end = arena;
    if (arena_bytes - arena_used >= n_bytes)
        return arena + arena_used;
    for (size_t i = 0; i < n_list; i++) {
        if (list[i].kind != MEMORY_DEVICE)
            continue;
        if ((size_t)(list[i].start - GUARD - end) >= n_bytes && list[i].start - GUARD > end)
            return end;
        end = list[i].start - GUARD + rounded(list[i].n_bytes);
    }
    return (size_t)(arena + arena_bytes - end) >= n_bytes ? end : NULL;
}

static char *place_device(size_t n_bytes)
{
    if (!arena) {
        arena_bytes = fake.memory_bytes * (size_t)fake.n_devices;
        void *range = mmap(NULL, arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED)
            return NULL;
        arena = range;
    }
    char *place = find_place(n_bytes);
    if (place && place + n_bytes > arena + arena_used) {
        arena_used = (size_t)(place + n_bytes - arena);
        protect(n_shown > 0 || !fake.hides);
    }
    return place;
}

static size_t used_of(int device)
{
    size_t n = 0;
    for (size_t i = 0; i < n_list; i++)
        n += list[i].kind == MEMORY_DEVICE && list[i].context->device == device ? rounded(list[i].n_bytes) : 0;
    return n;
}

CUresult fake_allocate(CUcontext context, memory_kind kind, size_t n_bytes, int is_pooled, CUdeviceptr *pointer)
{
    size_t whole = rounded(n_bytes);
    char *place = NULL;
    if (n_bytes == 0)
        return fake_violate(INVALID_VALUE, "an allocation of 0 bytes");
    if (whole < n_bytes || whole > fake.memory_bytes)
        return OUT_OF_MEMORY;
    if (kind == MEMORY_DEVICE && used_of(context->device) + whole > fake.memory_bytes)
        return OUT_OF_MEMORY;
    place = kind == MEMORY_DEVICE ? place_device(whole) : aligned_alloc(ALIGNMENT, whole);
    if (!place)
        return OUT_OF_MEMORY;
    fake_show();
    memset(place, GUARD_FILL, GUARD);
    fill(place + GUARD, n_bytes, FILL);
    memset(place + GUARD + n_bytes, GUARD_FILL, whole - GUARD - n_bytes);
    fake_conceal();
    allocation a = { .start = place + GUARD, .n_bytes = n_bytes, .kind = kind, .context = context, .is_pooled = is_pooled };
    insert(&a);
    *pointer = (CUdeviceptr)(uintptr_t)a.start;
    return 0;
}

static int guards_are_whole(const allocation *a)
{
    const unsigned char *start = (const unsigned char *)a->start - GUARD, *end = start + rounded(a->n_bytes);
    int whole = 1;
    for (const unsigned char *p = start; p < end; p++) {
        if (p == (const unsigned char *)a->start)
            p += a->n_bytes;
        whole &= *p == GUARD_FILL;
    }
    return whole;
}

static CUresult release(allocation *a)
{
    CUresult code = 0;
    fake_show();
    if (!guards_are_whole(a))
        code = fake_violate(0, "bytes around the allocation at %p of %zu bytes were written", (void *)a->start, a->n_bytes);
    if (a->kind == MEMORY_DEVICE)
        fill(a->start, a->n_bytes, FREED);
    fake_conceal();
    if (a->kind != MEMORY_DEVICE)
        free(a->start - GUARD);
    memmove(a, a + 1, (size_t)(list + --n_list - a) * sizeof *a);
    return code;
}

CUresult fake_free(CUdeviceptr pointer, int host)
{
    allocation *a = fake_find(pointer, 1);
    if (!a || (uint64_t)(uintptr_t)a->start != pointer || host != (a->kind == MEMORY_HOST))
        return fake_violate(INVALID_VALUE, "%#llx is freed, which is not allocated%s", (unsigned long long)pointer, a ? " so" : "");
    return release(a);
}

void fake_free_context(CUcontext context)
{
    for (size_t i = n_list; i-- > 0;)
        if (list[i].context == context)
            release(&list[i]);
}

void fake_free_graph(CUgraph graph)
{
    for (size_t i = n_list; i-- > 0;)
        if (list[i].graph == graph)
            release(&list[i]);
}

/* ---- What may be touched ---- */

int fake_is_device_address(uint64_t address)
{
    return arena && address - (uint64_t)(uintptr_t)arena < arena_bytes;
}

CUresult fake_check_bytes(CUcontext context, uint64_t address, size_t n_bytes, const char *what)
{
    const allocation *a = fake_find(address, n_bytes);
    if (a && (a->kind != MEMORY_DEVICE || a->context == context))
        return 0;
    return fake_violate(ILLEGAL_ADDRESS, "%s %zu bytes at %#llx, which are %s", what, n_bytes, (unsigned long long)address,
                        a ? "another context's" : "not all of one allocation");
}

/* ---- The driver's functions ---- */

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t n_bytes)
{
    CUresult code = fake_enter("cuMemAlloc", RULE_CONTEXT | RULE_UNSAFE);
    return fake_leave(code ? code : fake_allocate(fake_current(), MEMORY_DEVICE, n_bytes, 0, pointer));
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t n_bytes, unsigned flags)
{
    CUresult code = fake_enter("cuMemAllocManaged", RULE_CONTEXT | RULE_UNSAFE);
    (void)flags;
    return fake_leave(code ? code : fake_allocate(fake_current(), MEMORY_MANAGED, n_bytes, 0, pointer));
}

/* Waits for all work of the memory's context. */
static CUresult free_after_work(CUdeviceptr pointer, int host)
{
    const allocation *a = fake_find(pointer, 1);
    if (a)
        fake_finish_context(a->context);
    if (a && a->freeing)
        return fake_violate(INVALID_VALUE, "%#llx is freed twice", (unsigned long long)pointer);
    return fake_free(pointer, host);
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    CUresult code = fake_enter("cuMemFree", RULE_CONTEXT | RULE_UNSAFE);
    return fake_leave(code || !pointer ? code : free_after_work(pointer, 0));
}

CUresult cuMemHostAlloc(void **pointer, size_t n_bytes, unsigned flags)
{
    CUdeviceptr p = 0;
    CUresult code = fake_enter("cuMemHostAlloc", RULE_CONTEXT | RULE_UNSAFE);
    (void)flags;
    if (!code && !(code = fake_allocate(fake_current(), MEMORY_HOST, n_bytes, 0, &p)))
        *pointer = (void *)(uintptr_t)p;
    return fake_leave(code);
}

CUresult cuMemFreeHost(void *pointer)
{
    CUresult code = fake_enter("cuMemFreeHost", RULE_CONTEXT | RULE_UNSAFE);
    return fake_leave(code || !pointer ? code : free_after_work((CUdeviceptr)(uintptr_t)pointer, 1));
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pointer, void *host, unsigned flags)
{
    CUresult code = fake_enter("cuMemHostGetDevicePointer", RULE_CONTEXT);
    const allocation *a = fake_find((uint64_t)(uintptr_t)host, 1);
    if (!code && (flags || !a || a->kind != MEMORY_HOST))
        code = fake_violate(INVALID_VALUE, "cuMemHostGetDevicePointer of what is no page-locked memory");
    if (!code)
        *pointer = (CUdeviceptr)(uintptr_t)host;
    return fake_leave(code);
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer)
{
    CUresult code = fake_enter("cuPointerGetAttribute", RULE_CONTEXT);
    const allocation *a = fake_find(pointer, 1);
    if (!code && (attribute != 2 || !a))                         /* MEMORY_TYPE: 1 host, 2 device */
        code = INVALID_VALUE;
    if (!code)
        *(unsigned *)value = a->kind == MEMORY_HOST ? 1 : 2;
    return fake_leave(code);
}
