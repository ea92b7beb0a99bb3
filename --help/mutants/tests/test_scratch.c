/* Composites too large for the stack take scratch blocks: nobody may wait for one. Not a replay inside the host's own
 * parallel_for (a pool whose join helps with other work does that), not more replays at once than there are blocks, not a child
 * forked while other threads hold blocks. And what is refused for its size is named. */
#include "harness.h"

#include "composite.h"
#include "workspace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_INPUTS = 100, N = 20000, DEPTH = WORKSPACE_BLOCKS + 4 };

static float ones[N];

static int build_sum(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = in[0];
    for (int i = 1; i < N_INPUTS; i++)
        out[0] = ol_add(g, out[0], in[i]);
    return 0;
}

static ol_composite *compile_sum(ol_device *device)
{
    ol_dtype dtypes[N_INPUTS];
    ol_builder builder = { .build = build_sum, .n_inputs = N_INPUTS, .n_outputs = 1, .name = "sum" };
    ol_composite *c = NULL;
    ol_error error;
    for (int i = 0; i < N_INPUTS; i++)
        dtypes[i] = OL_FLOAT32;
    assert_ok(ol_compile(device, &builder, dtypes, &c, &error), &error);
    assert_non_null(c->checks);                              /* it is one of those that need scratch */
    return c;
}

static int sum_is_right(const ol_composite *c, int64_t n)
{
    float *y = malloc((size_t)n * sizeof *y);
    ol_tensor in[N_INPUTS], out = vector_of(y, OL_FLOAT32, n);
    for (int i = 0; i < N_INPUTS; i++)
        in[i] = vector_of(ones, OL_FLOAT32, n);
    int right = y && ol_replay(c, NULL, in, &out, NULL) == OL_OK && y[0] == N_INPUTS && y[n - 1] == N_INPUTS;
    free(y);
    return right;
}

typedef struct nest {
    const ol_composite *composite;
    int depth, right;
} nest;

/* Before its own tasks, a whole replay of the same composite, as deep as there are blocks and deeper. */
static void nested_parallel_for(void *user, size_t n_tasks, ol_task task, void *argument)
{
    nest *n = user;
    if (n->depth < DEPTH) {
        n->depth++;
        n->right &= sum_is_right(n->composite, N);
    }
    for (size_t i = 0; i < n_tasks; i++)
        task(argument, i);
}

static void replays_inside_the_hosts_parallel_for(void **state)
{
    (void)state;
    nest n = { NULL, 0, 1 };
    ol_cpu_options options = { .n_threads = 4, .parallel_for = nested_parallel_for, .parallel_user = &n };
    ol_device *device = NULL;
    ol_error error;
    assert_ok(ol_device_cpu(&options, &device, &error), &error);
    n.composite = compile_sum(device);
    alarm(60);
    assert_true(sum_is_right(n.composite, N));
    alarm(0);
    assert_int_equal(n.depth, DEPTH);
    assert_true(n.right);
    ol_composite_destroy((ol_composite *)n.composite);
    ol_device_destroy(device);
}

static atomic_int stop;

static void *replay_until_stopped(void *composite)
{
    while (!atomic_load(&stop))
        if (!sum_is_right(composite, 64))
            return composite;
    return NULL;
}

static void children_forked_while_threads_hold_blocks(void **state)
{
    (void)state;
    ol_composite *c = compile_sum(level_device(0));
    pthread_t threads[8];
    atomic_store(&stop, 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, replay_until_stopped, c), 0);
    for (int round = 0; round < 12; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(20);
            float y[64];                                     /* no malloc: another thread may have held its lock */
            ol_tensor in[N_INPUTS], out = vector_of(y, OL_FLOAT32, 64);
            for (int i = 0; i < N_INPUTS; i++)
                in[i] = vector_of(ones, OL_FLOAT32, 64);
            _exit(ol_replay(c, NULL, in, &out, NULL) == OL_OK && y[63] == N_INPUTS ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 8; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    ol_composite_destroy(c);
}

static int build_broadcasts(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    out[0] = in[0];
    for (int i = 0; i < *(int *)user; i++)
        out[0] = ol_broadcast_to(g, out[0], 1, (int64_t[]){ 4 });
    return 0;
}

static void equal_static_shapes_are_one(void **state)
{
    (void)state;
    int n_nodes = 10000;
    ol_builder builder = { .build = build_broadcasts, .user = &n_nodes, .n_inputs = 1, .n_outputs = 1, .name = "broadcasts" };
    ol_composite *c = NULL;
    ol_error error;
    assert_ok(ol_compile(level_device(0), &builder, (ol_dtype[]){ OL_FLOAT32 }, &c, &error), &error);
    assert_int_equal(c->rules->n_shapes, 1);
    assert_int_equal(c->rules->n_rules, 2);                  /* the output's, and the one broadcast's */
    ol_composite_destroy(c);
}

static int build_prefix_sums(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    int n = *(int *)user;
    out[0] = ol_negative(g, in[0]);
    for (int i = 1; i < n; i++)
        out[i] = ol_add(g, out[i - 1], in[i]);
    return 0;
}

static void too_many_dependencies_are_named(void **state)
{
    (void)state;
    int n = 6000;
    ol_dtype *dtypes = malloc((size_t)n * sizeof *dtypes);
    assert_non_null(dtypes);
    for (int i = 0; i < n; i++)
        dtypes[i] = OL_FLOAT32;
    ol_builder builder = { .build = build_prefix_sums, .user = &n, .n_inputs = n, .n_outputs = n, .name = "prefix sums" };
    ol_composite *c = NULL;
    ol_error error;
    assert_fails(ol_compile(level_device(0), &builder, dtypes, &c, &error), &error, OL_ERROR_LIMIT, "prefix sums", "OL_MAX_DEPENDENCIES (16777216)");
    assert_null(c);
    free(dtypes);
}

static void null_is_refused_everywhere(void **state)
{
    (void)state;
    ol_dtype dtype = OL_INT8;
    assert_false(ol_dtype_parse(NULL, &dtype));
    assert_false(ol_dtype_parse("float32", NULL));
    assert_int_equal(dtype, OL_INT8);
    assert_false(ol_primitive_result(0, OL_FLOAT32, NULL));
    float x = 1;
    ol_tensor t = ol_tensor_contiguous(&x, OL_FLOAT32, 1, NULL);
    ol_composite *c = compile_sum(level_device(0));
    ol_tensor in[N_INPUTS];
    ol_error error;
    for (int i = 0; i < N_INPUTS; i++)
        in[i] = t;
    assert_fails(ol_replay(c, NULL, in, &t, &error), &error, OL_ERROR_ARGUMENT, "replay sum", "rank -1");
    ol_composite_destroy(c);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_inside_the_hosts_parallel_for), cmocka_unit_test(children_forked_while_threads_hold_blocks),
        cmocka_unit_test(equal_static_shapes_are_one), cmocka_unit_test(too_many_dependencies_are_named),
        cmocka_unit_test(null_is_refused_everywhere),
    };
    return HARNESS_RUN(argc, argv, tests);
}
