/* The host's side of the GPU benchmarks, in C, as an engine calls it: how long an enqueue loop takes per call, of our replay, of a
 * gated-delta step, of a mixer step and of an empty kernel. A shared object that bench_*_gpu.py load beside the library. */
#include <dlfcn.h>
#include <onelaunch_gated_delta.h>
#include <stdio.h>
#include <time.h>

typedef int (*launch_fn)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *stream, void **parameters, void **extra);
typedef int (*load_fn)(void **module, const void *image);
typedef int (*get_fn)(void **function, void *module, const char *name);
typedef int (*synchronize_fn)(void *stream);

static const char empty_kernel[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n";

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void *symbol(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver ? dlsym(driver, name) : NULL;
}

/* Microseconds per replay of n in a row, the work of the loop waited for outside of the time; negative: an error, printed. */
double replay_loop(const ol_composite *composite, ol_stream stream, const ol_tensor *inputs, const ol_tensor *outputs, int n)
{
    ol_error error;
    double start = now_us();
    for (int i = 0; i < n; i++)
        if (ol_replay(composite, stream, inputs, outputs, &error) != OL_OK) {
            fprintf(stderr, "%s: %s\n", error.operation, error.description);
            return -1;
        }
    return (now_us() - start) / n;
}

/* The same of a step. */
double step_loop(const ol_gated_delta *layer, ol_stream stream, const ol_gated_delta_arguments *arguments, int n)
{
    ol_error error;
    double start = now_us();
    for (int i = 0; i < n; i++)
        if (ol_gated_delta_step(layer, stream, arguments, &error) != OL_OK) {
            fprintf(stderr, "%s: %s\n", error.operation, error.description);
            return -1;
        }
    return (now_us() - start) / n;
}

/* And of a mixer step. */
double mixer_loop(const ol_gated_delta_mixer *mixer, ol_stream stream, const ol_gated_delta_mixer_arguments *arguments, int n)
{
    ol_error error;
    double start = now_us();
    for (int i = 0; i < n; i++)
        if (ol_gated_delta_mixer_step(mixer, stream, arguments, &error) != OL_OK) {
            fprintf(stderr, "%s: %s\n", error.operation, error.description);
            return -1;
        }
    return (now_us() - start) / n;
}

/* A handle for empty_loop; NULL where the driver refuses. In the current context. */
void *empty_create(void)
{
    void *module, *function;
    load_fn load = (load_fn)symbol("cuModuleLoadData");
    get_fn get = (get_fn)symbol("cuModuleGetFunction");
    return load && get && load(&module, empty_kernel) == 0 && get(&function, module, "empty") == 0 ? function : NULL;
}

int empty_launch(void *function, void *stream)
{
    static launch_fn launch;
    if (!launch)
        launch = (launch_fn)symbol("cuLaunchKernel");
    return launch(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

double empty_loop(void *function, void *stream, int n)
{
    empty_launch(function, stream);
    double start = now_us();
    for (int i = 0; i < n; i++)
        if (empty_launch(function, stream) != 0)
            return -1;
    return (now_us() - start) / n;
}
