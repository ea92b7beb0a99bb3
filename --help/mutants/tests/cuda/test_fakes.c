/* The fakes themselves: what a program that does right gets from them, and that each wrong is refused with the driver's code and
 * counted. Driven by the functions of driver.h, found one by one, without the backend. */
#include "harness.h"

#include "cuda/driver.h"
#include "fake_cuda.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static driver d;
static CUcontext first, second;
static CUmodule module;
static CUfunction reverse, fused, touch, uneven, exchanging, copy_words, clustered;
static CUstream stream;

/* ---- The compiler ---- */

static const char *const options[] = { "--gpu-architecture=sm_90", "--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true",
                                       "--prec-sqrt=true", "--disable-warnings" };

static const char kernels[] =
    "typedef unsigned long long uint64_t;\n"
    "struct words { uint64_t at[3]; };\n"
    /* Each block reverses its 64 elements. */
    "extern \"C\" __global__ void __launch_bounds__(64) reverse(const __grid_constant__ words passed) {\n"
    "    __shared__ unsigned held[64];\n"
    "    const unsigned *from = (const unsigned *)passed.at[0] + blockIdx.x * blockDim.x;\n"
    "    unsigned *to = (unsigned *)passed.at[1] + blockIdx.x * blockDim.x;\n"
    "    held[threadIdx.x] = from[threadIdx.x];\n"
    "    __syncthreads();\n"
    "    to[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];\n"
    "}\n"
    /* x*x - 1 with one rounding and with two, of x = 1 + 2^-27. */
    "extern \"C\" __global__ void fused(double *out, double x) {\n"
    "    out[0] = __fma_rn(x, x, -1.0);\n"
    "    out[1] = x * x - 1.0;\n"
    "    out[2] = __dsqrt_rn(x);\n"
    "    float f, s = (float)x;\n"
    "    asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(f) : \"f\"(s));\n"
    "    out[3] = f;\n"
    "}\n"
    /* Moves one element of 1, 4 or 16 bytes. */
    "extern \"C\" __global__ void touch(const char *from, char *to, int n_bytes) {\n"
    "    if (n_bytes == 1) *to = *from;\n"
    "    if (n_bytes == 4) *(unsigned *)to = *(const unsigned *)from;\n"
    "    if (n_bytes == 16) *(uint4 *)to = *(const uint4 *)from;\n"
    "}\n"
    "extern \"C\" __global__ void uneven(int most) {\n"
    "    if ((int)threadIdx.x < most) __syncthreads();\n"
    "}\n"
    /* Lane i gets what lane i ^ 5 has, twice in a row, and counts; from `most` on lanes do not take part. */
    "extern \"C\" __global__ void exchange(float *out, int most) {\n"
    "    float x = threadIdx.x;\n"
    "    if ((int)threadIdx.x < most) x = 100 * __shfl_xor_sync(0xffffffffu, x, 5) + __shfl_xor_sync(0xffffffffu, __fmul_rn(2, x), 16);\n"
    "    out[threadIdx.x] = x;\n"
    "    atomicAdd((unsigned *)out + 64, 2);\n"
    "}\n"
    /* Each thread puts its block's number into the next block's shared memory, between barriers of the cluster; `wrong` says what is left out. */
    "extern \"C\" __global__ void clustered(float *out, int wrong) {\n"
    "    __shared__ float held[32];\n"
    "    const unsigned rank = blockIdx.x % 4, to = (rank + 1) % 4;\n"
    "    const unsigned own = (unsigned)__cvta_generic_to_shared(&held[threadIdx.x]);\n"
    "    const float x = blockIdx.x;\n"
    "    unsigned at;\n"
    "    held[threadIdx.x] = -1;\n"
    "    if (wrong != 1) {\n"
    "        asm volatile(\"barrier.cluster.arrive.release;\" : : : \"memory\");\n"
    "        asm volatile(\"barrier.cluster.wait.acquire;\" : : : \"memory\");\n"
    "    }\n"
    "    if (wrong == 2 && rank == 0) return;\n"
    "    asm(\"mapa.shared::cluster.u32 %0, %1, %2;\" : \"=r\"(at) : \"r\"(own), \"r\"(to));\n"
    "    asm volatile(\"st.shared::cluster.f32 [%0], %1;\" : : \"r\"(at), \"f\"(x) : \"memory\");\n"
    "    if (wrong != 3 || rank != 2) {\n"
    "        asm volatile(\"barrier.cluster.arrive.release;\" : : : \"memory\");\n"
    "        asm volatile(\"barrier.cluster.wait.acquire;\" : : : \"memory\");\n"
    "    }\n"
    "    if (wrong == 4) asm volatile(\"barrier.cluster.wait.acquire;\" : : : \"memory\");\n"
    "    out[blockIdx.x * blockDim.x + threadIdx.x] = held[threadIdx.x];\n"
    "}\n"
    "extern \"C\" __global__ void copy_words(const uint64_t *from, uint64_t *to) { *to = *from; }\n";

static void *compiler_function(void *compiler, const char *name)
{
    void *function = dlsym(compiler, name);
    assert_non_null(function);
    return function;
}

/* The image of a text, for free(); NULL where it does not compile. */
static char *compile(const char *text, int n_options, char log[1000], int *code)
{
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
    int (*compile_program)(void *, int, const char *const *), (*destroy)(void **);
    int (*get_size)(void *, size_t *), (*get)(void *, char *);
    void *compiler = dlopen(getenv("ONELAUNCH_NVRTC"), RTLD_NOW | RTLD_LOCAL), *program = NULL;
    char *image = NULL;
    size_t n = 0;
    assert_non_null(compiler);
    *(void **)&create = compiler_function(compiler, "nvrtcCreateProgram");
    *(void **)&compile_program = compiler_function(compiler, "nvrtcCompileProgram");
    *(void **)&destroy = compiler_function(compiler, "nvrtcDestroyProgram");
    assert_int_equal(create(&program, text, "kernels.cu", 0, NULL, NULL), 0);
    *code = compile_program(program, n_options, options);
    if (log) {
        *(void **)&get_size = compiler_function(compiler, "nvrtcGetProgramLogSize");
        *(void **)&get = compiler_function(compiler, "nvrtcGetProgramLog");
        assert_int_equal(get_size(program, &n), 0);
        assert_in_range(n, 1, 1000);
        assert_int_equal(get(program, log), 0);
    }
    if (*code == 0) {
        *(void **)&get_size = compiler_function(compiler, "nvrtcGetCUBINSize");
        *(void **)&get = compiler_function(compiler, "nvrtcGetCUBIN");
        assert_int_equal(get_size(program, &n), 0);
        image = malloc(n);
        assert_int_equal(get(program, image), 0);
    }
    assert_int_equal(destroy(&program), 0);
    return image;
}

static void compiler_answers(void **state)
{
    char log[1000];
    int code, major = 0, minor = 0, n = 0, list[16];
    void *compiler = dlopen(getenv("ONELAUNCH_NVRTC"), RTLD_NOW | RTLD_LOCAL);
    int (*version)(int *, int *), (*count)(int *), (*architectures)(int *);
    (void)state;
    *(void **)&version = compiler_function(compiler, "nvrtcVersion");
    *(void **)&count = compiler_function(compiler, "nvrtcGetNumSupportedArchs");
    *(void **)&architectures = compiler_function(compiler, "nvrtcGetSupportedArchs");
    assert_int_equal(version(&major, &minor), 0);
    assert_int_equal(major * 10 + minor, 130);
    assert_int_equal(count(&n), 0);
    assert_int_equal(n, 6);
    assert_int_equal(architectures(list), 0);
    assert_int_equal(list[3], 90);
    assert_null(compile("extern \"C\" __global__ void k(int x) {\n    undeclared = x;\n}\n", 7, log, &code));
    assert_int_equal(code, 6);
    assert_non_null(strstr(log, "kernels.cu:2:5: error"));
    setenv("FAKE_NVRTC_ARCHITECTURES", "80", 1);
    assert_null(compile(kernels, 7, log, &code));
    assert_int_equal(code, 5);
    unsetenv("FAKE_NVRTC_ARCHITECTURES");
    /* More parameters than CUDA 12.0 passes. */
    static const char large[] = "struct large { char bytes[4097]; };\nextern \"C\" __global__ void k(large x) {}\n";
    char *image = compile(large, 7, log, &code);
    assert_non_null(image);
    free(image);
    setenv("FAKE_NVRTC_VERSION", "12.0", 1);
    assert_null(compile(large, 7, log, &code));
    assert_non_null(strstr(log, "parameter space"));
    unsetenv("FAKE_NVRTC_VERSION");
}

/* ---- Setting up ---- */

static CUdeviceptr allocate(size_t n_bytes)
{
    CUdeviceptr p = 0;
    assert_int_equal(d.cuMemAlloc(&p, n_bytes), 0);
    return p;
}

static int launch_in(CUstream s, CUfunction function, unsigned grid, unsigned block, void **parameters)
{
    return d.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, s, parameters, NULL);
}

static int launch_reverse(CUstream s, CUdeviceptr from, CUdeviceptr to, unsigned n_blocks)
{
    uint64_t words[3] = { from, to, 0 };
    int code = launch_in(s, reverse, n_blocks, 64, (void *[]){ words });
    memset(words, 0, sizeof words);          /* the driver has its copy */
    return code;
}

static int launch_touch(CUdeviceptr from, CUdeviceptr to, int n_bytes)
{
    return launch_in(stream, touch, 1, 1, (void *[]){ &from, &to, &n_bytes });
}

static void read_back(void *to, CUdeviceptr from, size_t n_bytes)
{
    assert_int_equal(d.cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, from, n_bytes, stream), 0);
}

/* The nth violation's text has `part`; it was the only one since the last call. */
static void assert_violation(const char *part)
{
    assert_int_equal(fake_violations(), 1);
    if (!strstr(fake_violation(0), part))
        fail_msg("\"%s\" is not about \"%s\"", fake_violation(0), part);
    fake_forget();
}

static char *common_image;               /* of `kernels` */

static int begin(void **state)
{
    int code;
    (void)state;
    if (!common_image)
        common_image = compile(kernels, 7, NULL, &code);
    assert_non_null(common_image);
    assert_int_equal(d.cuInit(0), 0);
    assert_int_equal(d.cuDevicePrimaryCtxRetain(&first, 0), 0);
    assert_int_equal(d.cuDevicePrimaryCtxRetain(&second, 1), 0);
    assert_int_equal(d.cuCtxPushCurrent(first), 0);
    assert_int_equal(d.cuModuleLoadData(&module, common_image), 0);
    const struct { const char *name; CUfunction *function; } functions[] = {
        { "reverse", &reverse }, { "fused", &fused }, { "touch", &touch }, { "uneven", &uneven },
        { "exchange", &exchanging }, { "copy_words", &copy_words }, { "clustered", &clustered },
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        assert_int_equal(d.cuModuleGetFunction(functions[i].function, module, functions[i].name), 0);
    assert_int_equal(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
    fake_forget();
    return 0;
}

/* Whatever a test did, nothing of it is left. */
static int end(void **state)
{
    CUcontext popped;
    (void)state;
    fake_hold(0);
    assert_int_equal(d.cuCtxPopCurrent(&popped), 0);
    assert_ptr_equal(popped, first);
    assert_int_equal(d.cuDevicePrimaryCtxRelease(0), 0);
    assert_int_equal(d.cuDevicePrimaryCtxRelease(1), 0);
    assert_int_equal(fake_leaks(), 0);
    assert_int_equal(fake_violations(), 0);
    return 0;
}

/* ---- Kernels ---- */

static void kernels_run(void **state)
{
    unsigned in[192], out[192];
    (void)state;
    CUdeviceptr from = allocate(sizeof in), to = allocate(sizeof out);
    for (unsigned i = 0; i < 192; i++)
        in[i] = i;
    assert_int_equal(d.cuMemcpyAsync(from, (CUdeviceptr)(uintptr_t)in, sizeof in, stream), 0);
    for (int backwards = 0; backwards < 2; backwards++) {
        fake_backwards(backwards);
        assert_int_equal(launch_reverse(stream, from, to, 3), 0);
        read_back(out, to, sizeof out);
        for (unsigned i = 0; i < 192; i++)
            assert_int_equal(out[i], i / 64 * 64 + 63 - i % 64);
        assert_int_equal(d.cuMemsetD32Async(to, 7, 192, stream), 0);
    }
    fake_backwards(0);
    read_back(out, to, sizeof out);
    assert_int_equal(out[191], 7);
    assert_int_equal(fake_calls("cuLaunchKernel"), 2);
    assert_int_equal(fake_violations(), 0);
}

static void arithmetic_is_exact(void **state)
{
    double x = 1 + 0x1p-27, out[4];
    (void)state;
    CUdeviceptr to = allocate(sizeof out);
    assert_int_equal(launch_in(stream, fused, 1, 1, (void *[]){ &to, &x }), 0);
    read_back(out, to, sizeof out);
    assert_true(out[0] == 0x1p-26 + 0x1p-54);
    assert_true(out[1] == 0x1p-26);
    assert_true(out[2] == 1 + 0x1p-28);
    assert_true(out[3] != 1 && fabs(out[3] - 1) <= 0x1p-20);    /* an approximation: never better than it is documented to be */
}

static void functions_have_limits(void **state)
{
    int threads = 0, blocks = 0;
    CUfunction none;
    (void)state;
    assert_int_equal(d.cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, reverse), 0);
    assert_int_equal(threads, 64);
    assert_int_equal(d.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, 64, 0), 0);
    assert_int_equal(blocks, 2);
    assert_int_equal(d.cuModuleGetFunction(&none, module, "missing"), 500);
    int most = 0;
    assert_int_equal(launch_in(stream, reverse, 1, 65, (void *[]){ &most }), 1);
    assert_violation("65x1x1 threads");
    assert_int_equal(launch_in(stream, uneven, 1, 65, (void *[]){ &most }), 701);
    assert_violation("65 threads");
    assert_int_equal(launch_in(stream, uneven, 0, 1, (void *[]){ &most }), 1);
    assert_violation("0x1x1 blocks");
}

static void uneven_barriers_fail(void **state)
{
    int most = 3;
    (void)state;
    assert_int_equal(launch_in(stream, uneven, 1, 4, (void *[]){ &most }), 0);
    assert_int_equal(d.cuStreamSynchronize(stream), 719);
    assert_violation("3 of 4 threads");
}

/* Warps are 32 threads; all lanes of one exchange, or the launch fails. */
static void lanes_exchange(void **state)
{
    float out[64];
    unsigned count;
    CUdeviceptr p = allocate(65 * 4);
    int most = 64;
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        fake_backwards(backwards);
        assert_int_equal(d.cuMemsetD32Async(p, 0, 65, stream), 0);
        assert_int_equal(launch_in(stream, exchanging, 1, 64, (void *[]){ &p, &most }), 0);
        assert_int_equal(d.cuMemcpyAsync((CUdeviceptr)(uintptr_t)out, p, sizeof out, stream), 0);
        assert_int_equal(d.cuMemcpyAsync((CUdeviceptr)(uintptr_t)&count, p + sizeof out, sizeof count, stream), 0);
        assert_int_equal(d.cuStreamSynchronize(stream), 0);
        for (int i = 0; i < 64; i++)
            assert_true(out[i] == (float)(100 * (i ^ 5) + 2 * (i ^ 16)));
        assert_int_equal(count, 128);
    }
    fake_backwards(0);
    most = 60;
    assert_int_equal(launch_in(stream, exchanging, 1, 64, (void *[]){ &p, &most }), 0);
    assert_int_equal(d.cuStreamSynchronize(stream), 719);
    assert_violation("28 threads of a block exchange");
}

/* ---- What kernels touch ---- */

static int launch_clusters(unsigned n_blocks, unsigned cluster, void **parameters)
{
    CUlaunchAttribute of_cluster = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.cluster = { cluster, 1, 1 } };
    const CUlaunchConfig config = { .grid = { n_blocks, 1, 1 }, .block = { 32, 1, 1 }, .stream = stream, .attributes = &of_cluster, .n_attributes = 1 };
    return d.cuLaunchKernelEx(&config, clustered, parameters, NULL);
}

/* Blocks of a cluster have shared memory of their own, and reach each other's. */
static void clusters_run(void **state)
{
    float out[256];
    CUdeviceptr p = allocate(sizeof out);
    int wrong = 0;
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        fake_backwards(backwards);
        assert_int_equal(d.cuMemsetD32Async(p, 0, 256, stream), 0);
        assert_int_equal(launch_clusters(8, 4, (void *[]){ &p, &wrong }), 0);
        read_back(out, p, sizeof out);
        for (int i = 0; i < 256; i++)
            assert_true(out[i] == (float)(i / 128 * 4 + (i / 32 + 3) % 4));
    }
    fake_backwards(0);
    assert_int_equal(fake_calls("cuLaunchKernelEx"), 2);
}

static void clusters_that_do_not_fit(void **state)
{
    CUdeviceptr p = allocate(1024);
    int wrong = 0;
    (void)state;
    assert_int_equal(launch_clusters(9, 4, (void *[]){ &p, &wrong }), 912);
    assert_violation("9 blocks in clusters of 4x1x1");
    assert_int_equal(launch_clusters(16, 16, (void *[]){ &p, &wrong }), 912);
    assert_violation("clusters of 16x1x1");
    assert_int_equal(launch_clusters(4, 0, (void *[]){ &p, &wrong }), 912);
    assert_violation("clusters of 0x1x1");
    /* A barrier of clusters without any. */
    assert_int_equal(launch_in(stream, clustered, 4, 32, (void *[]){ &p, &wrong }), 0);
    assert_int_equal(d.cuStreamSynchronize(stream), 719);
    assert_violation("there is none");
}

static void run_wrong_cluster(int wrong, const char *part)
{
    CUdeviceptr p = allocate(512);
    assert_int_equal(launch_clusters(4, 4, (void *[]){ &p, &wrong }), 0);
    assert_int_equal(d.cuStreamSynchronize(stream), 719);
    assert_violation(part);
}

static void clusters_without_a_beginning(void **state)
{
    (void)state;
    run_wrong_cluster(1, "known to have begun");
}

static void clusters_whose_blocks_end(void **state)
{
    (void)state;
    run_wrong_cluster(2, "a block that has ended");
}

static void clusters_with_uneven_barriers(void **state)
{
    (void)state;
    run_wrong_cluster(3, "96 of 128 threads of a cluster");
}

static void clusters_that_wait_without_arriving(void **state)
{
    (void)state;
    run_wrong_cluster(4, "without having arrived");
}

static void accesses_are_checked(void **state)
{
    static char host[64];
    const struct { const char *what; int n_bytes; ptrdiff_t from, to; int code; } cases[] = {
        { "loads 4 bytes", 4, 96, 0, 700 }, { "stores 1 bytes", 1, 0, -1, 700 },
        { "loads 4 bytes", 4, 2, 0, 716 }, { "stores 16 bytes", 16, 0, 8, 716 },
    };
    (void)state;
    if (!fake_has_checks())
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CUdeviceptr p = allocate(98);
        assert_int_equal(launch_touch(p + (CUdeviceptr)cases[i].from, p + (CUdeviceptr)cases[i].to, cases[i].n_bytes), 0);
        assert_int_equal(d.cuMemFree(p), cases[i].code);         /* the context is lost */
        assert_violation(cases[i].what);
        end(state);
        begin(state);
    }
    CUdeviceptr p = allocate(64), other;
    assert_int_equal(launch_touch(p, (CUdeviceptr)(uintptr_t)host, 4), 0);
    assert_violation("stores 4 bytes");
    end(state);
    begin(state);
    assert_int_equal(d.cuCtxPushCurrent(second), 0);
    other = allocate(64);
    assert_int_equal(d.cuCtxPopCurrent(NULL), 0);
    p = allocate(64);
    assert_int_equal(launch_touch(other, p, 4), 0);
    assert_violation("another context's");
}

static void guards_are_watched(void **state)
{
    int code;
    (void)state;
    setenv("FAKE_NVRTC_CHECKS", "0", 1);
    char *image = compile(kernels, 7, NULL, &code);
    unsetenv("FAKE_NVRTC_CHECKS");
    assert_int_equal(d.cuModuleLoadData(&module, image), 0);
    free(image);
    assert_int_equal(d.cuModuleGetFunction(&touch, module, "touch"), 0);
    CUdeviceptr p = allocate(98);
    assert_int_equal(launch_touch(p, p + 98, 1), 0);
    assert_int_equal(d.cuMemFree(p), 0);
    assert_violation("98 bytes were written");
}

/* ---- Memory ---- */

static void memory_is_counted(void **state)
{
    void *host = NULL;
    CUdeviceptr mapped = 0, pooled = 0, one = allocate(100);
    unsigned filled[25];
    (void)state;
    size_t before = fake_leaks();
    CUdeviceptr p = allocate(1);
    assert_int_equal(fake_leaks(), before + 1);
    assert_int_equal(d.cuMemFree(p), 0);
    assert_int_equal(fake_leaks(), before);
    assert_int_equal(fake_violations(), 0);
    assert_int_equal(d.cuMemFree(p), 1);
    assert_violation("not allocated");
    assert_int_equal(d.cuMemFree(one + 4), 1);
    assert_violation("not allocated so");
    assert_int_equal(d.cuMemFreeAsync(one, stream), 1);
    assert_violation("not allocated so");
    assert_int_equal(d.cuMemAlloc(&p, 0), 1);
    assert_violation("0 bytes");
    assert_int_equal(d.cuMemAlloc(&p, (size_t)1 << 40), 2);
    assert_int_equal(d.cuMemHostAlloc(&host, 16, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP), 0);
    assert_int_equal(d.cuMemHostGetDevicePointer(&mapped, host, 0), 0);
    memset(host, 1, 16);
    assert_int_equal(launch_touch(one, mapped, 16), 0);
    assert_int_equal(*(unsigned char *)host, 0xcd);              /* as new memory is */
    assert_int_equal(d.cuMemFreeHost(host), 0);
    assert_int_equal(d.cuMemAllocAsync(&pooled, 100, stream), 0);
    assert_int_equal(d.cuMemsetD32Async(pooled, 5, 25, stream), 0);
    read_back(filled, pooled, 100);
    assert_int_equal(filled[24], 5);
    assert_int_equal(d.cuMemFreeAsync(pooled, stream), 0);
    assert_int_equal(d.cuMemsetD32Async(pooled, 5, 25, stream), 1);
    assert_violation("a fill");
    assert_int_equal(fake_violations(), 0);
}

/* ---- Handles and contexts ---- */

static void handles_are_checked(void **state)
{
    CUcontext current;
    CUstream other, destroyed;
    CUevent event;
    CUdeviceptr p = allocate(256);
    (void)state;
    assert_int_equal(d.cuCtxPushCurrent(second), 0);
    assert_int_equal(d.cuStreamCreate(&other, 0), 0);
    assert_int_equal(launch_reverse(stream, p, p, 1), 400);
    assert_violation("another context current");
    assert_int_equal(d.cuModuleUnload(module), 400);
    assert_violation("another context");
    assert_int_equal(d.cuCtxPopCurrent(&current), 0);
    assert_ptr_equal(current, second);
    assert_int_equal(launch_reverse(other, p, p, 1), 400);
    assert_violation("stream of another context");
    assert_int_equal(d.cuStreamGetCtx(other, &current), 0);
    assert_ptr_equal(current, second);
    assert_int_equal(d.cuStreamCreate(&destroyed, 0), 0);
    assert_int_equal(d.cuStreamDestroy(destroyed), 0);
    assert_int_equal(launch_reverse(destroyed, p, p, 1), 400);
    assert_violation("does not live");
    assert_int_equal(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), 0);
    assert_int_equal(d.cuEventDestroy(event), 0);
    assert_int_equal(d.cuEventRecord(event, stream), 400);
    assert_violation("does not live");
    assert_int_equal(d.cuModuleUnload(module), 0);
    assert_int_equal(launch_reverse(stream, p, p, 1), 400);
    assert_violation("not loaded");
    assert_int_equal(d.cuCtxPopCurrent(NULL), 0);
    assert_int_equal(d.cuMemAlloc(&p, 1), 201);
    assert_violation("without a current context");
    assert_int_equal(d.cuCtxGetCurrent(&current), 0);
    assert_null(current);
    assert_int_equal(d.cuCtxPushCurrent(first), 0);
    fake_refuse_null_stream(1);
    assert_int_equal(d.cuMemsetD32Async(allocate(4), 0, 1, NULL), 0);
    assert_violation("legacy stream");
    fake_refuse_null_stream(0);
}

/* ---- Captures ---- */

static void captures_record(void **state)
{
    unsigned in[64], out[64];
    int n_kernels, n_others, status = 0;
    (void)state;
    CUdeviceptr from = allocate(sizeof in), to = allocate(sizeof out);
    for (unsigned i = 0; i < 64; i++)
        in[i] = i;
    assert_int_equal(d.cuMemsetD32Async(to, 9, 64, stream), 0);
    assert_int_equal(fake_begin_capture(stream, 0), 0);
    assert_int_equal(d.cuStreamIsCapturing(stream, &status), 0);
    assert_int_equal(status, 1);
    assert_int_equal(launch_reverse(stream, from, to, 1), 0);
    assert_int_equal(d.cuMemsetD32Async(from, 1, 1, stream), 0);
    assert_int_equal(fake_end_capture(stream, &n_kernels, &n_others), 0);
    assert_int_equal(n_kernels, 1);
    assert_int_equal(n_others, 1);
    read_back(out, to, sizeof out);
    assert_int_equal(out[0], 9);                                 /* nothing was done */
    for (int round = 0; round < 2; round++) {
        assert_int_equal(d.cuMemcpyAsync(from, (CUdeviceptr)(uintptr_t)in, sizeof in, stream), 0);
        assert_int_equal(fake_graph_replay(stream, stream), 0);
        read_back(out, to, sizeof out);
        assert_int_equal(out[0], 63);
        assert_int_equal(out[63], 0);
        read_back(out, from, 4);
        assert_int_equal(out[0], 1);
        in[0] = 0;
    }
    assert_int_equal(fake_violations(), 0);
}

static void *allocate_elsewhere(void *pointer)
{
    CUcontext popped;
    d.cuCtxPushCurrent(first);
    *(int *)pointer = d.cuMemAlloc(&(CUdeviceptr){ 0 }, 4);
    d.cuCtxPopCurrent(&popped);
    return NULL;
}

static int allocate_in_thread(void)
{
    pthread_t thread;
    int code = -1;
    pthread_create(&thread, NULL, allocate_elsewhere, &code);
    pthread_join(thread, NULL);
    return code;
}

static void captures_refuse(void **state)
{
    int n_kernels, n_others, mode = CU_STREAM_CAPTURE_MODE_RELAXED, status;
    CUevent event;
    CUstream idle, blocking;
    (void)state;
    assert_int_equal(d.cuEventCreate(&event, 0), 0);
    assert_int_equal(d.cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING), 0);
    assert_int_equal(d.cuStreamCreate(&blocking, 0), 0);
    CUdeviceptr p = allocate(4);
    CUmodule unneeded;
    void *host;
    for (int i = 0; i < 7; i++) {
        static const char *const names[] = { "cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuEventQuery", "cuStreamSynchronize",
                                             "cuModuleLoadData", "cuModuleUnload" };
        assert_int_equal(fake_begin_capture(stream, 0), 0);
        int code = i == 0 ? d.cuMemAlloc(&p, 4) : i == 1 ? d.cuMemFree(p) : i == 2 ? d.cuMemHostAlloc(&host, 4, 0) :
                   i == 3 ? d.cuEventQuery(event) : i == 4 ? d.cuStreamSynchronize(idle) :
                   i == 5 ? d.cuModuleLoadData(&unneeded, common_image) : d.cuModuleUnload(module);
        assert_int_equal(code, 900);
        assert_violation(names[i]);
        assert_int_equal(launch_reverse(stream, p, p, 1), 901);  /* the capture is broken */
        assert_int_equal(fake_end_capture(stream, &n_kernels, &n_others), 901);
    }
    /* A thread that means it; another thread's; a capture of the thread alone. */
    assert_int_equal(fake_begin_capture(stream, 0), 0);
    assert_int_equal(d.cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(mode, 0);
    assert_int_equal(d.cuMemFree(allocate(4)), 0);
    assert_int_equal(d.cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_int_equal(allocate_in_thread(), 900);
    assert_violation("cuMemAlloc");
    assert_int_equal(fake_end_capture(stream, &n_kernels, &n_others), 901);
    assert_int_equal(fake_begin_capture(stream, 1), 0);
    assert_int_equal(allocate_in_thread(), 0);
    assert_int_equal(fake_end_capture(stream, &n_kernels, &n_others), 0);
    /* Events of a capture; the legacy stream beside a blocking one. */
    assert_int_equal(fake_begin_capture(stream, 2), 0);
    assert_int_equal(d.cuEventRecord(event, stream), 0);
    assert_int_equal(d.cuEventQuery(event), 907);
    assert_violation("cuEventQuery");
    assert_int_equal(fake_end_capture(stream, &n_kernels, &n_others), 901);
    assert_int_equal(fake_begin_capture(blocking, 2), 0);
    assert_int_equal(d.cuStreamIsCapturing(NULL, &status), 906);
    assert_int_equal(d.cuMemsetD32Async(p, 0, 1, NULL), 906);
    assert_violation("legacy stream");
    assert_int_equal(fake_end_capture(blocking, &n_kernels, &n_others), 901);
}

/* ---- Failures ---- */

static void failures_are_planned(void **state)
{
    CUdeviceptr p = allocate(256);
    (void)state;
    fake_fail("cuMemAlloc", 2, 2);
    CUdeviceptr q = allocate(4);
    assert_int_equal(d.cuMemAlloc(&q, 4), 2);
    q = allocate(4);
    fake_fail("cuLaunchKernel", 0, 719);
    assert_int_equal(launch_reverse(stream, p, p, 1), 719);
    assert_int_equal(launch_reverse(stream, p, p, 1), 719);
    fake_forget();
    assert_int_equal(launch_reverse(stream, p, p, 1), 0);
    fake_fail("*", 3, 3);
    assert_int_equal(launch_reverse(stream, p, p, 1), 0);
    assert_int_equal(d.cuStreamSynchronize(stream), 0);
    assert_int_equal(d.cuMemAlloc(&q, 4), 3);
    assert_int_equal(d.cuMemAlloc(&q, 4), 0);
    fake_poison(700);
    assert_int_equal(d.cuStreamSynchronize(stream), 0);
    assert_int_equal(launch_reverse(stream, p, p, 1), 0);
    assert_int_equal(launch_reverse(stream, p, p, 1), 700);
    assert_int_equal(d.cuStreamSynchronize(stream), 700);
    assert_int_equal(d.cuMemFree(p), 700);
    assert_int_equal(fake_violations(), 0);
}

/* ---- Work that waits ---- */

static void work_is_held(void **state)
{
    uint64_t word = 1, out = 0;
    CUevent event;
    (void)state;
    CUdeviceptr from = allocate(8), to = allocate(8);
    assert_int_equal(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), 0);
    assert_int_equal(d.cuEventQuery(event), 0);
    fake_hold(1);
    assert_int_equal(d.cuMemcpyAsync(from, (CUdeviceptr)(uintptr_t)&word, 8, stream), 0);
    word = 2;                                                    /* pageable memory was read at the call */
    assert_int_equal(launch_in(stream, copy_words, 1, 1, (void *[]){ &from, &to }), 0);
    assert_int_equal(d.cuEventRecord(event, stream), 0);
    assert_int_equal(d.cuEventQuery(event), 600);
    fake_run_held();
    assert_int_equal(d.cuEventQuery(event), 0);
    read_back(&out, to, 8);
    assert_int_equal(out, 1);
    /* Page-locked memory is read when the work is done. */
    void *host;
    assert_int_equal(d.cuMemHostAlloc(&host, 8, 0), 0);
    memcpy(host, &(uint64_t){ 3 }, 8);
    assert_int_equal(d.cuMemcpyAsync(from, (CUdeviceptr)(uintptr_t)host, 8, stream), 0);
    memcpy(host, &(uint64_t){ 4 }, 8);
    assert_int_equal(d.cuStreamSynchronize(stream), 0);
    read_back(&out, from, 8);
    assert_int_equal(out, 4);
    assert_int_equal(d.cuMemFreeHost(host), 0);
}

/* ---- Broken libraries ---- */

static void broken_libraries_lack(void **state)
{
    static const struct { const char *path, *lacks; } libraries[] = {
        { BROKEN "/driver_too_old/libcuda.so.1", "cuLaunchKernel" }, { BROKEN "/driver_no_device/libcuda.so.1", NULL },
        { BROKEN "/libnvrtc_no_cubin.so", "nvrtcGetCUBIN" }, { BROKEN "/libnvrtc_old.so", NULL },
    };
    int (*init)(unsigned), (*architectures)(int *), list[8] = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i].path, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(library);
        if (libraries[i].lacks)
            assert_null(dlsym(library, libraries[i].lacks));
        if (i == 1) {
            *(void **)&init = dlsym(library, "cuInit");
            assert_non_null(dlsym(library, "cuLaunchKernel"));
            assert_int_equal(init(0), 100);
        }
        if (i == 3) {
            *(void **)&architectures = dlsym(library, "nvrtcGetSupportedArchs");
            assert_int_equal(architectures(list), 0);
            assert_int_equal(list[2], 80);
            assert_int_equal(list[3], 0);
        }
        dlclose(library);
    }
}

int main(int argc, char **argv)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !fake_is_loaded() || !getenv("ONELAUNCH_NVRTC")) {
        fprintf(stderr, "test_fakes: run it with LD_LIBRARY_PATH and ONELAUNCH_NVRTC naming the fakes\n");
        return 1;
    }
#define F(name, symbol, arguments)                                       \
    if (!(*(void **)&d.name = dlsym(library, #symbol))) {                \
        fprintf(stderr, "test_fakes: the fake driver lacks " #symbol "\n"); \
        return 1;                                                        \
    }
    DRIVER_FUNCTIONS(F)
    DRIVER_LATER_FUNCTIONS(F)
#undef F
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiler_answers),
        cmocka_unit_test_setup_teardown(kernels_run, begin, end),
        cmocka_unit_test_setup_teardown(arithmetic_is_exact, begin, end),
        cmocka_unit_test_setup_teardown(functions_have_limits, begin, end),
        cmocka_unit_test_setup_teardown(uneven_barriers_fail, begin, end),
        cmocka_unit_test_setup_teardown(lanes_exchange, begin, end),
        cmocka_unit_test_setup_teardown(clusters_run, begin, end),
        cmocka_unit_test_setup_teardown(clusters_that_do_not_fit, begin, end),
        cmocka_unit_test_setup_teardown(clusters_without_a_beginning, begin, end),
        cmocka_unit_test_setup_teardown(clusters_whose_blocks_end, begin, end),
        cmocka_unit_test_setup_teardown(clusters_with_uneven_barriers, begin, end),
        cmocka_unit_test_setup_teardown(clusters_that_wait_without_arriving, begin, end),
        cmocka_unit_test_setup_teardown(accesses_are_checked, begin, end),
        cmocka_unit_test_setup_teardown(guards_are_watched, begin, end),
        cmocka_unit_test_setup_teardown(memory_is_counted, begin, end),
        cmocka_unit_test_setup_teardown(handles_are_checked, begin, end),
        cmocka_unit_test_setup_teardown(captures_record, begin, end),
        cmocka_unit_test_setup_teardown(captures_refuse, begin, end),
        cmocka_unit_test_setup_teardown(failures_are_planned, begin, end),
        cmocka_unit_test_setup_teardown(work_is_held, begin, end),
        cmocka_unit_test(broken_libraries_lack),
    };
    return HARNESS_RUN(argc, argv, tests);
}
