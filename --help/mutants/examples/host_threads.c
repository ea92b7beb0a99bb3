/* The host's own thread pool: the library starts no thread, it asks the host to run tasks. This "pool" makes threads for each
 * call, which a real host would not; what matters is the contract of ol_parallel_for. */
#include <onelaunch.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_THREADS = 4, N = 1 << 20 };

typedef struct loop {
    ol_task task;
    void *argument;
    size_t n_tasks;
    atomic_size_t next;
} loop;

static void *work(void *argument)
{
    loop *l = argument;
    for (size_t i; (i = atomic_fetch_add(&l->next, 1)) < l->n_tasks;)
        l->task(l->argument, i);
    return NULL;
}

static void host_parallel_for(void *user, size_t n_tasks, ol_task task, void *argument)
{
    loop l = { .task = task, .argument = argument, .n_tasks = n_tasks };
    pthread_t threads[N_THREADS];
    int n_started = 0;
    ++*(int *)user;
    while (n_started < N_THREADS - 1 && pthread_create(&threads[n_started], NULL, work, &l) == 0)
        n_started++;
    work(&l);                                              /* the caller works too */
    while (n_started > 0)
        pthread_join(threads[--n_started], NULL);
}

static int softplus(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_softplus(g, in[0]);
    return 0;
}

int main(void)
{
    ol_error error;
    ol_device *device = NULL;
    ol_composite *composite = NULL;
    int n_loops = 0;
    ol_cpu_options options = { .n_threads = N_THREADS, .parallel_for = host_parallel_for, .parallel_user = &n_loops };
    ol_builder builder = { .build = softplus, .n_inputs = 1, .n_outputs = 1, .name = "softplus" };
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    int64_t shape[] = { N };
    if (!x || !y)
        return EXIT_FAILURE;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - N / 2) * (40.0f / N);
    ol_tensor input = ol_tensor_contiguous(x, OL_FLOAT32, 1, shape), output = ol_tensor_contiguous(y, OL_FLOAT32, 1, shape);

    if (ol_device_cpu(&options, &device, &error) || ol_compile(device, &builder, (ol_dtype[]){ OL_FLOAT32 }, &composite, &error) ||
        ol_replay(composite, NULL, &input, &output, &error)) {
        fprintf(stderr, "%s: %s\n", error.operation, error.description);
        return EXIT_FAILURE;
    }
    printf("softplus(0) = %.9g; %d loop of the host's pool, %llu launch\n", y[N / 2], n_loops, (unsigned long long)ol_device_launches(device));
    ol_composite_destroy(composite);
    ol_device_destroy(device);
    free(x);
    free(y);
    return EXIT_SUCCESS;
}
