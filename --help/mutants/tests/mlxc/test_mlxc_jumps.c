/* Errors that end more than a call: the default handler ends the process, a handler of the client's leaves by longjmp, also out of a trace;
 * and children of the process. What a jump leaves behind is not freed: leaks are not looked for here. */
#include "seed.h"

#include <sys/wait.h>
#include <unistd.h>

/* A call that always fails. */
static int fail_once(void)
{
    mlx_array none = { 0 }, r = { 0 };
    return mlx_exp(&r, none, stream);
}

/* ---- The default handler ---- */

/* What a child that meets an error prints, and its exit code; -1: a signal. */
static int child_of(void (*act)(void), char *output, size_t n_bytes)
{
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        act();
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n + 1 < n_bytes && (got = read(ends[0], output + n, n_bytes - 1 - n)) > 0;)
        n += (size_t)got;
    output[n] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void default_handler(void)
{
    mlx_set_error_handler(NULL, NULL, NULL);
    fail_once();
}

static void default_handler_prints_and_exits(void **state)
{
    char output[4000];
    (void)state;
    int code = child_of(default_handler, output, sizeof output);
    print_message("exit code %d: %s", code, output);
    assert_true(code > 0);
    assert_non_null(strstr(output, "exp"));
}

/* ---- Jumps ---- */

static jmp_buf out_of_here;

static void jumps(const char *message, void *data)
{
    (void)message;
    (void)data;
    longjmp(out_of_here, 1);
}

static void a_jump_out_of_a_call(void **state)
{
    volatile int n_left = 0;
    (void)state;
    for (volatile int i = 0; i < 3; i++) {
        mlx_set_error_handler(jumps, NULL, NULL);
        if (setjmp(out_of_here) == 0)
            fail_once();
        else
            n_left++;
    }
    error_handler_default();
    assert_int_equal(n_left, 3);
    seed_works();
}

static int fails_within(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    const mlx_array none = { 0 };
    mlx_array r = { 0 };
    (void)res;
    (void)input;
    (void)payload;
    return mlx_exp(&r, none, stream);
}

/* The handler leaves by a jump from within a trace: what was traced may leak, but this thread traces no more. */
static void a_jump_out_of_a_trace(void **state)
{
    (void)state;
    for (volatile int i = 0; i < 500; i++) {
        static mlx_array in;
        static mlx_closure c;
        in = mlx_array_new_float32(0);
        c = compiled(fails_within, NULL, true);
        mlx_set_error_handler(jumps, NULL, NULL);
        if (setjmp(out_of_here) == 0) {
            mlx_array out;
            apply(c, 1, &in, 1, &out);
            error_handler_default();
            fail_msg("the handler was not called");
        }
        error_handler_default();
        seed_works();
        float item = 0;
        mlx_array r = mlx_array_new();
        OK(mlx_exp(&r, in, stream));
        OK(mlx_array_item_float32(&item, r));
        assert_true(item == 1);
        free_all(1, &r);
        free_all(1, &in);
        OK(mlx_closure_free(c));
    }
}

/* The jump ends within a function that is being traced, out of the trace of another one that it applied to an array: its own goes on. */
static int survives_a_jump(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    static mlx_array x, one;
    mlx_closure *inner = payload;
    x = input_of(input, 0);
    one = mlx_array_new_float32(1);
    mlx_set_error_handler(jumps, NULL, NULL);
    if (setjmp(out_of_here) == 0) {
        mlx_array out;
        apply(*inner, 1, &one, 1, &out);
        fail_msg("the handler was not called");
    }
    error_handler_default();
    int code = mlx_add(&x, x, one, stream) || mlx_square(&x, x, stream) || mlx_vector_array_set_value(res, x);
    mlx_array_free(x);
    mlx_array_free(one);
    return code;
}

static void a_jump_into_a_trace(void **state)
{
    mlx_closure inner = compiled(fails_within, NULL, true), c = compiled(survives_a_jump, &inner, true);
    mlx_array in = mlx_array_new_float32(2), out;
    (void)state;
    for (int i = 0; i < 3; i++) {
        float item = 0;
        long before = launches();
        OK(mlx_detail_compile_clear_cache());
        OK(apply(c, 1, &in, 1, &out));
        if (before >= 0)
            assert_int_equal(launches() - before, 1);
        OK(mlx_array_item_float32(&item, out));
        assert_true(item == 9);
        free_all(1, &out);
        seed_works();
    }
    free_all(1, &in);
    OK(mlx_closure_free(c));
    OK(mlx_closure_free(inner));
}

/* ---- Children ---- */

static void in_a_child(void **state)
{
    mlx_closure rates = compiled(seed_rates, NULL, true);
    mlx_array in[4], out[2];
    int status = 0;
    (void)state;
    if (on_gpu())
        skip();                                          /* CUDA does not survive a fork */
    seed_inputs(in);
    OK(apply(rates, 4, in, 2, out));
    free_all(2, out);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        mlx_vector_array input = mlx_vector_array_new_data(in, 4), output = { 0 };
        int code = mlx_closure_apply(&output, rates, input) || mlx_detail_compile_clear_cache() || mlx_closure_apply(&output, rates, input);
        _exit(code ? 3 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    OK(apply(rates, 4, in, 2, out));
    free_all(2, out);
    free_all(4, in);
    OK(mlx_closure_free(rates));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(default_handler_prints_and_exits), cmocka_unit_test(a_jump_out_of_a_call),
                                        cmocka_unit_test(a_jump_out_of_a_trace), cmocka_unit_test(a_jump_into_a_trace),
                                        cmocka_unit_test(in_a_child) };
    return CLIENT_RUN(argc, argv, tests);
}
