/* The error handler: whose it is, when its data goes, calls out of it, changes of it from several threads. */
#include "client.h"

#include <pthread.h>
#include <unistd.h>

/* A call that always fails. */
static int fail_once(void)
{
    mlx_array none = { 0 }, r = { 0 };
    return mlx_exp(&r, none, stream);
}

/* ---- The client's handler ---- */

typedef struct seen {
    pthread_t thread;
    int n_calls, n_freed;
    char message[600];
} seen;

static void see(const char *message, void *data)
{
    seen *s = data;
    s->thread = pthread_self();
    s->n_calls++;
    snprintf(s->message, sizeof s->message, "%s", message);
}

static void gone(void *data)
{
    ((seen *)data)->n_freed++;
}

static void data_lives_until_replaced(void **state)
{
    seen a = { 0 }, b = { 0 }, c = { 0 };
    (void)state;
    mlx_set_error_handler(see, &a, gone);
    assert_int_equal(fail_once(), 1);
    assert_int_equal(a.n_calls, 1);
    assert_true(pthread_equal(a.thread, pthread_self()));
    assert_int_equal(a.n_freed, 0);
    mlx_set_error_handler(see, &b, NULL);                /* data without a destructor is handed over all the same */
    assert_int_equal(a.n_freed, 1);
    assert_int_equal(fail_once(), 1);
    assert_int_equal(b.n_calls, 1);
    mlx_set_error_handler(see, &c, gone);
    assert_int_equal(fail_once(), 1);
    error_handler_default();
    assert_int_equal(c.n_freed, 1);
    assert_int_equal(fail_once(), 1);
    assert_int_equal(error_take(), 1);
    assert_int_equal(a.n_calls + b.n_calls + c.n_calls, 3);
    assert_int_equal(a.n_freed + b.n_freed, 1);
}

static void one_message_per_error(void **state)
{
    seen s = { 0 };
    (void)state;
    mlx_set_error_handler(see, &s, NULL);
    for (int i = 1; i <= 100; i++) {
        assert_int_equal(fail_once(), 1);
        assert_int_equal(s.n_calls, i);
    }
    error_handler_default();
    assert_non_null(strstr(s.message, "exp"));
}

/* ---- Calls out of a handler ---- */

static void works_within(const char *message, void *data)
{
    float item = 0;
    mlx_array a = mlx_array_new_float32(0), r = mlx_array_new();
    (void)message;
    if (mlx_exp(&r, a, stream) == 0 && mlx_array_item_float32(&item, r) == 0 && item == 1)
        ++*(int *)data;
    mlx_array_free(a);
    mlx_array_free(r);
}

static void sets_another(const char *message, void *data)
{
    (void)message;
    (void)data;
    error_handler_default();
}

static void handlers_may_call(void **state)
{
    int n_worked = 0;
    seen freed = { 0 };
    (void)state;
    mlx_set_error_handler(works_within, &n_worked, NULL);
    assert_int_equal(fail_once(), 1);
    assert_int_equal(n_worked, 1);
    mlx_set_error_handler(sets_another, &freed, gone);
    assert_int_equal(fail_once(), 1);
    assert_int_equal(fail_once(), 1);
    assert_int_equal(error_take(), 1);
    assert_int_equal(freed.n_freed, 1);
    error_handler_default();
}

/* ---- Threads ---- */

typedef struct guarded {
    uint64_t alive;                      /* 0xA11E while the data lives */
    pthread_t expected;
} guarded;

static int stop;

static void check_alive(const char *message, void *data)
{
    guarded *g = data;
    if (g->alive != 0xA11E || !message[0])
        abort();
}

static void end_life(void *data)
{
    guarded *g = data;
    if (g->alive != 0xA11E)
        abort();
    g->alive = 0;
    free(g);
}

static void *set_handlers(void *user)
{
    (void)user;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        guarded *g = malloc(sizeof *g);
        g->alive = 0xA11E;
        mlx_set_error_handler(check_alive, g, end_life);
    }
    return NULL;
}

static void *make_errors(void *user)
{
    long n = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        if (fail_once() != 1)
            abort();
        n++;
    }
    *(long *)user = n;
    return NULL;
}

static void handlers_from_several_threads(void **state)
{
    pthread_t setters[2], failing[2];
    long n[2];
    (void)state;
    guarded *g = malloc(sizeof *g);
    g->alive = 0xA11E;
    mlx_set_error_handler(check_alive, g, end_life);
    stop = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&setters[i], NULL, set_handlers, NULL), 0);
        assert_int_equal(pthread_create(&failing[i], NULL, make_errors, &n[i]), 0);
    }
    usleep(300000);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) {
        pthread_join(setters[i], NULL);
        pthread_join(failing[i], NULL);
    }
    assert_true(n[0] > 0 && n[1] > 0);
    error_handler_default();
}

/* The handler is called on the thread that failed. */
static void *fail_here(void *user)
{
    seen *s = user;
    fail_once();
    return pthread_equal(s->thread, pthread_self()) ? s : NULL;
}

static void the_faulting_thread(void **state)
{
    seen s = { 0 };
    pthread_t thread;
    void *result;
    (void)state;
    mlx_set_error_handler(see, &s, NULL);
    assert_int_equal(pthread_create(&thread, NULL, fail_here, &s), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &s);
    error_handler_default();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_lives_until_replaced), cmocka_unit_test(one_message_per_error),
        cmocka_unit_test(handlers_may_call), cmocka_unit_test(handlers_from_several_threads), cmocka_unit_test(the_faulting_thread),
    };
    return CLIENT_RUN(argc, argv, tests);
}
