/* A host that loads the library, uses its threads, and unloads it with everything alive (A65). A program of its own, since it
 * must not be linked to anything that keeps the library's dependencies loaded. Its exit code says what went wrong. */
#include <dlfcn.h>
#include <time.h>

#include <onelaunch.h>

#define IMPORT(type, name) type name##_ = (type)dlsym(library, #name)

typedef ol_status (*device_fn)(const ol_cpu_options *, ol_device **, ol_error *);
typedef ol_status (*compile_fn)(ol_device *, ol_dtype, ol_dtype, ol_dtype, ol_composite **, ol_error *);
typedef ol_status (*replay_fn)(const ol_composite *, ol_stream, const ol_tensor *, const ol_tensor *, ol_error *);

enum { N = 1000000 };                          /* enough to be split over threads */
static float a[N], decay[N], rate_logarithm, bias;
static ol_device *device;                      /* both stay alive */
static ol_composite *composite;

static ol_tensor vector(void *data, int64_t n)
{
    return (ol_tensor){ .data = data, .dtype = OL_FLOAT32, .rank = 1, .shape = { n }, .strides = { 1 } };
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return 2;
    __extension__ IMPORT(device_fn, ol_device_cpu);
    __extension__ IMPORT(compile_fn, ol_gated_delta_decay_compile);
    __extension__ IMPORT(replay_fn, ol_replay);
    if (!ol_device_cpu_ || !ol_gated_delta_decay_compile_ || !ol_replay_)
        return 3;
    ol_cpu_options options = { .n_threads = 2 };
    if (ol_device_cpu_(&options, &device, NULL) != OL_OK ||
        ol_gated_delta_decay_compile_(device, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, &composite, NULL) != OL_OK)
        return 4;
    ol_tensor in[3] = { vector(a, N), vector(&rate_logarithm, 1), vector(&bias, 1) }, out = vector(decay, N);
    if (ol_replay_(composite, NULL, in, &out, NULL) != OL_OK || decay[N - 1] != 0.5f)       /* exp(-ln 2) */
        return 5;
    if (dlclose(library) != 0)
        return 6;
    struct timespec pause = { 0, 100000000 };  /* the pool's thread has time to run into what is no longer there */
    nanosleep(&pause, NULL);
    return 0;
}
