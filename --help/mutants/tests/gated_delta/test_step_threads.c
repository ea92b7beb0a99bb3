/* One layer stepped by several threads at once, on pools of their own and on slots of one pool, while others make and destroy layers; and
 * threads whose floating-point state is not the default one, which neither matters nor is changed. Meant for ThreadSanitizer, too, which cannot
 * see into pthreadpool; there the device has one thread. */
#include "step_case.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
enum { DEVICE_THREADS = 1 };
#else
enum { DEVICE_THREADS = 3 };
#endif
enum { N_THREADS = 6, ROUNDS = 12 };

typedef struct shared {
    ol_device *device;
    ol_gated_delta *layer;
    step_case before, expected;
    step_case pool;                    /* one sequence a thread, on slots of one state */
    atomic_int wrong;
} shared;

typedef struct own {
    shared *all;
    int number;
    pthread_t thread;
} own;

static void *step_alone(void *user)
{
    own *o = user;
    for (int round = 0; round < ROUNDS; round++) {
        step_case c;
        step_copy(&c, &o->all->before);
        if (ol_gated_delta_step(o->all->layer, NULL, &c.arguments, NULL) != OL_OK || !step_equal(&o->all->expected, &c))
            atomic_fetch_add(&o->all->wrong, 1);
        step_free(&c);
        ol_gated_delta *another;
        if (ol_gated_delta_create(o->all->device, &o->all->before.options, &another, NULL) != OL_OK)
            atomic_fetch_add(&o->all->wrong, 1);
        else
            ol_gated_delta_destroy(another);
    }
    return NULL;
}

/* Its own tokens and slot of the shared tensors. */
static void *step_own_slot(void *user)
{
    own *o = user;
    static const int numbers[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_UPDATE, AT_DECAY, AT_OUTPUT };
    step_case c = o->all->pool;
    int64_t slot = o->number, one = 1;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        ol_tensor *t = step_tensor(&c, numbers[i]);
        int64_t n = t->shape[0] / N_THREADS;
        t->data = (char *)t->data + slot * n * t->strides[0] * (int64_t)ol_dtype_size(t->dtype);
        t->shape[0] = n;
    }
    c.arguments.read_slots = ol_tensor_contiguous(&slot, OL_INT64, 1, &one);
    if (ol_gated_delta_step(o->all->layer, NULL, &c.arguments, NULL) != OL_OK)
        atomic_fetch_add(&o->all->wrong, 1);
    return NULL;
}

static void in_threads(shared *s, void *(*work)(void *))
{
    own owns[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        owns[i] = (own){ .all = s, .number = i };
        assert_int_equal(pthread_create(&owns[i].thread, NULL, work, &owns[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(owns[i].thread, NULL);
    assert_int_equal(atomic_load(&s->wrong), 0);
}

static void test_threads(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    shared s = { 0 };
    ol_error error;
    ol_cpu_options options = { .n_threads = DEVICE_THREADS };
    step_case pool_expected;
    assert_ok(ol_device_cpu(&options, &s.device, &error), &error);
    step_usual(&s.before, 2, 2, 64, 64, 4, 3, &random);
    step_copy(&s.expected, &s.before);
    step_reference(&s.expected);
    assert_ok(ol_gated_delta_create(s.device, &s.before.options, &s.layer, &error), &error);
    in_threads(&s, step_alone);
    step_usual(&s.pool, 2, 2, 64, 64, N_THREADS, 2, &random);
    step_copy(&pool_expected, &s.pool);
    step_reference(&pool_expected);
    in_threads(&s, step_own_slot);
    assert_true(step_equal(&pool_expected, &s.pool));
    ol_gated_delta_destroy(s.layer);
    ol_device_destroy(s.device);
    step_free(&s.before);
    step_free(&s.expected);
    step_free(&s.pool);
    step_free(&pool_expected);
}

/* Flush-to-zero and denormals-are-zero as well, where the machine has them. */
static void flush(void)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u);
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1u << 24));
#endif
}

static void test_floating_point_state(void **state)
{
    (void)state;
    static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    for (int i = 0; i < 40; i++)
        for (int level = 0; level < (int)level_count(); level++) {
            uint64_t random = harness_seed * 31 + (uint64_t)i;
            step_case c, expected;
            ol_gated_delta *layer;
            ol_error error;
            fenv_t host;
            step_random(&c, STEP_SPECIAL, &random);
            step_copy(&expected, &c);
            step_reference(&expected);
            fegetenv(&host);
            fesetround(modes[i % 4]);
            feclearexcept(FE_ALL_EXCEPT);
            if (i % 2)
                flush();
            ol_status status = ol_gated_delta_create(level_device((size_t)level), &c.options, &layer, &error);
            if (status == OL_OK)
                status = ol_gated_delta_step(layer, NULL, &c.arguments, &error);
            int mode = fegetround(), raised = fetestexcept(FE_ALL_EXCEPT);
            fesetenv(&host);
            assert_ok(status, &error);
            assert_int_equal(mode, modes[i % 4]);
            assert_int_equal(raised, 0);
            if (!step_equal(&expected, &c)) {
                step_print(&c);
                fail();
            }
            ol_gated_delta_destroy(layer);
            step_free(&c);
            step_free(&expected);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_floating_point_state),
    };
    return HARNESS_RUN(argc, argv, tests);
}
