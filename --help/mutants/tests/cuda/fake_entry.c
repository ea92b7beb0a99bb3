/* What every call of the fake driver passes: the lock, counts, planned failures, and the rules of captures; and what it has to
 * tell a test.
 *
 * The rules (CUDA Driver API reference, cuStreamBeginCapture and cuThreadExchangeStreamCaptureMode): calls that may wait for or
 * disturb other work are refused with 900 to a thread of mode
 *   global        while this thread captures, or any thread does in mode global
 *   thread-local  while this thread captures
 *   relaxed       never
 * where captures that were begun in mode relaxed do not count. A refused call breaks the captures that refused it. */
#include "fake_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_PLANS = 64, N_COUNTS = 128, N_VIOLATIONS_KEPT = 64 };

fake_state fake = { .hides = 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int capture_mode;        /* of the thread */

static struct {
    char name[48];
    int after, code;                     /* calls left before the one that fails; -1: every call */
} plans[N_PLANS];
static struct {
    const char *name;
    size_t n;
} counts[N_COUNTS];
static size_t n_plans, n_counts, n_violations;
static char violations[N_VIOLATIONS_KEPT][200];

/* ---- Settings ---- */

static long number_of(const char *name, long otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtol(value, NULL, 0) : otherwise;
}

static void plan(const char *name, size_t length, int nth, int code)
{
    size_t i = 0;
    while (i < n_plans && !(strncmp(plans[i].name, name, length) == 0 && !plans[i].name[length]))
        i++;
    if (i == N_PLANS || length >= sizeof plans->name)
        abort();
    memcpy(plans[i].name, name, length);
    plans[i].name[length] = '\0';
    plans[i].after = nth - 1;
    plans[i].code = code;
    n_plans += i == n_plans;
}

static void read_settings(void)
{
    const char *p = getenv("FAKE_CUDA_FAIL");
    int length, nth, code, used;
    fake.n_devices = (int)number_of("FAKE_CUDA_DEVICES", 2);
    fake.n_devices = fake.n_devices > N_DEVICES_MOST ? N_DEVICES_MOST : fake.n_devices;
    fake.capability = (int)number_of("FAKE_CUDA_CAPABILITY", 90);
    fake.version = (int)number_of("FAKE_CUDA_DRIVER", 13000);
    fake.memory_bytes = (size_t)number_of("FAKE_CUDA_MEMORY", 1 << 30);
    fake.n_multiprocessors = (int)number_of("FAKE_CUDA_MULTIPROCESSORS", 4);
    fake.n_blocks = (int)number_of("FAKE_CUDA_BLOCKS", 2);
    fake.max_threads = (int)number_of("FAKE_CUDA_MAX_THREADS", 64);
    fake.backwards = (int)number_of("FAKE_CUDA_BACKWARDS", 0);
    fake.holds = (int)number_of("FAKE_CUDA_HOLD", 0);
    fake.hides = (int)number_of("FAKE_CUDA_HIDE", 1);
    while (p && (length = (int)strcspn(p, ":")) > 0 && sscanf(p + length, ":%d:%d%n", &nth, &code, &used) == 2) {
        plan(p, (size_t)length, nth, code);
        p += length + used;
        p += *p == ',';
    }
}

void fake_lock(void)
{
    static int is_read;
    pthread_mutex_lock(&lock);
    if (!is_read) {
        is_read = 1;
        read_settings();
    }
}

void fake_unlock(void) { pthread_mutex_unlock(&lock); }

/* ---- Violations and counts ---- */

CUresult fake_violate(CUresult code, const char *format, ...)
{
    char text[sizeof *violations];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "fake CUDA: violation: %s\n", text);
    if (n_violations < N_VIOLATIONS_KEPT)
        memcpy(violations[n_violations], text, sizeof text);
    n_violations++;
    return code;
}

void fake_count(const char *name)
{
    size_t i = 0;
    while (i < n_counts && strcmp(counts[i].name, name) != 0)
        i++;
    if (i == N_COUNTS)
        abort();
    counts[i].name = name;
    counts[i].n++;
    n_counts += i == n_counts;
}

static CUresult planned(const char *name)
{
    CUresult code = 0;
    for (size_t i = 0; i < n_plans; i++)
        if (plans[i].after != -2 && (strcmp(plans[i].name, name) == 0 || strcmp(plans[i].name, "*") == 0)) {
            if (plans[i].after == -1 || plans[i].after == 0)
                code = plans[i].code;
            if (plans[i].after >= 0)
                plans[i].after -= plans[i].after ? 1 : 2;
        }
    return code;
}

/* ---- Captures ---- */

int fake_has_capture(CUcontext context, int only_blocking)
{
    for (CUstream s = fake.streams; s; s = s->next)
        if (s->capture != CAPTURE_NONE && s->context == context && (s->is_blocking || !only_blocking))
            return 1;
    return 0;
}

void fake_break_captures(CUcontext context)
{
    for (CUstream s = fake.streams; s; s = s->next)
        if (s->capture == CAPTURE_ACTIVE && (!context || s->context == context))
            s->capture = CAPTURE_BROKEN;
}

CUresult fake_refused_by_capture(const char *name)
{
    int refused = 0;
    for (CUstream s = fake.streams; s && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED; s = s->next) {
        int mine = s->capture != CAPTURE_NONE && pthread_equal(s->capturer, pthread_self());
        if (s->capture == CAPTURE_NONE || s->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            continue;
        if (mine || (capture_mode == 0 && s->capture_mode == 0)) {
            refused = 1;
            s->capture = CAPTURE_BROKEN;
        }
    }
    return refused ? fake_violate(CAPTURE_UNSUPPORTED, "%s while a stream is being captured", name) : 0;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
    CUresult code = fake_enter("cuThreadExchangeStreamCaptureMode", RULE_INITIALIZED);
    if (!code && (*mode < 0 || *mode > 2))
        code = INVALID_VALUE;
    if (!code) {
        int before = capture_mode;
        capture_mode = *mode;
        *mode = before;
    }
    return fake_leave(code);
}

/* ---- Every call ---- */

CUresult fake_enter(const char *name, int rules)
{
    fake_lock();
    fake_count(name);
    fake_count("*");
    CUresult code = rules == RULE_ANY && strncmp(name, "cuGetError", 10) == 0 ? 0 : planned(name);
    if (code)
        return code;
    if ((rules & RULE_INITIALIZED) && !fake.is_initialized)
        return fake_violate(NOT_INITIALIZED, "%s before cuInit", name);
    if ((rules & RULE_CONTEXT) == RULE_CONTEXT) {
        CUcontext context = fake_current();
        if (!context)
            return fake_violate(INVALID_CONTEXT, "%s without a current context", name);
        if (!context->alive)
            return fake_violate(CONTEXT_IS_DESTROYED, "%s in a destroyed context", name);
        if (context->left_behind)
            return context->left_behind;
    }
    return rules & RULE_UNSAFE ? fake_refused_by_capture(name) : 0;
}

CUresult fake_leave(CUresult code)
{
    fake_unlock();
    return code;
}

/* ---- For tests ---- */

size_t fake_calls(const char *name)
{
    size_t n = 0;
    fake_lock();
    for (size_t i = 0; i < n_counts; i++)
        if (strcmp(counts[i].name, name) == 0)
            n = counts[i].n;
    fake_unlock();
    return n;
}

size_t fake_violations(void)
{
    fake_lock();
    size_t n = n_violations;
    fake_unlock();
    return n;
}

const char *fake_violation(size_t i)
{
    return i < fake_violations() && i < N_VIOLATIONS_KEPT ? violations[i] : NULL;
}

size_t fake_leaks(void)
{
    fake_lock();
    size_t n = fake_context_leaks() + fake_memory_leaks() + fake_stream_leaks() + fake_graph_leaks() + fake_module_leaks();
    fake_unlock();
    return n;
}

int fake_forget(void)
{
    fake_lock();
    memset(counts, 0, sizeof counts);
    n_plans = n_counts = n_violations = 0;
    fake.poison = 0;
    fake_unlock();
    return 0;
}

int fake_fail(const char *name, int nth, int code)
{
    fake_lock();
    plan(name, strlen(name), nth, code);
    fake_unlock();
    return 0;
}

#define SETTER(function, variable)             \
    int function(int value)                    \
    {                                          \
        fake_lock();                           \
        fake.variable = value;                 \
        fake_unlock();                         \
        return 0;                              \
    }
SETTER(fake_poison, poison)
SETTER(fake_hold, holds)
SETTER(fake_backwards, backwards)
SETTER(fake_refuse_null_stream, refuses_null_stream)

/* FAKE_CUDA_STRICT. */
__attribute__((destructor)) static void judge(void)
{
    size_t n_leaks;
    if (!number_of("FAKE_CUDA_STRICT", 0))
        return;
    n_leaks = fake_leaks();
    if (n_violations || n_leaks) {
        fflush(NULL);
        fprintf(stderr, "fake CUDA: %zu violations, %zu objects left\n", n_violations, n_leaks);
        _exit(99);
    }
}
