/* The common ground of the programs that are written against mlx-c's C interface. */
#include "client.h"

#include <stdatomic.h>
#include <strings.h>
#include <unistd.h>

uint64_t client_seed = 1;
mlx_stream stream;

uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);        /* Steele, Lea, Flood: "Fast splittable pseudorandom number generators" */
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* ---- Errors ---- */

static _Thread_local char messages[4096];
static _Thread_local int n_messages;

static atomic_int n_unclear;

/* Every message says which function it is of, and what was expected. */
static bool is_clear(const char *message)
{
    return strncmp(message, "mlx_", 4) == 0 && strstr(message, ": ") && (strstr(message, "expected") || strstr(message, "no memory"));
}

static void keep_message(const char *message, void *data)
{
    (void)data;
    if (!is_clear(message)) {
        n_unclear++;
        print_error("a message that does not say what was expected: %s\n", message);
    }
    size_t n = n_messages++ == 0 ? 0 : strlen(messages);
    snprintf(messages + n, sizeof messages - n, "%s%s", n ? "; " : "", message ? message : "(no message)");
}

const char *error_message(void)
{
    return messages;
}

int error_take(void)
{
    int n = n_messages;
    n_messages = 0;
    messages[0] = 0;
    return n;
}

void error_handler_default(void)
{
    mlx_set_error_handler(keep_message, NULL, NULL);
}

void client_ok(int code, const char *what, const char *file, int line)
{
    if (code == 0 && n_messages == 0)
        return;
    print_error("%s: code %d, %d messages: %s\n", what, code, n_messages, messages);
    error_take();
    _fail(file, line);
}

static bool contains(const char *text, const char *part)
{
    size_t n = strlen(part);
    for (; strlen(text) >= n; text++)
        if (strncasecmp(text, part, n) == 0)
            return true;
    return false;
}

void client_fails(int code, const char *text, const char *what, const char *file, int line)
{
    bool right = code == 1 && n_messages >= 1 && contains(messages, text);
    if (!right) {
        print_error("%s: expected an error that says \"%s\"; code %d, %d messages: %s\n", what, text, code, n_messages, messages);
        error_take();
        _fail(file, line);
    }
    error_take();
}

/* ---- Dtypes and bits ---- */

#define D(code, name, bytes) code,
const mlx_dtype dtypes[N_DTYPES] = { DTYPES(D) };
#undef D

const char *dtype_name(mlx_dtype dtype)
{
    switch ((int)dtype) {
#define D(code, name, bytes) case code: return #name;
        DTYPES(D)
#undef D
    }
    return "?";
}

size_t dtype_bytes(mlx_dtype dtype)
{
    switch ((int)dtype) {
#define D(code, name, bytes) case code: return bytes;
        DTYPES(D)
#undef D
    }
    return 0;
}

int dtype_find(const char *name)
{
    for (int i = 0; i < N_DTYPES; i++)
        if (strcmp(name, dtype_name(dtypes[i])) == 0)
            return (int)dtypes[i];
    return -1;
}

bool dtype_is_float(mlx_dtype dtype)
{
    return dtype == MLX_FLOAT16 || dtype == MLX_BFLOAT16 || dtype == MLX_FLOAT32;
}

void bits_store(void *memory, mlx_dtype dtype, size_t i, uint64_t bits)
{
    size_t n = dtype_bytes(dtype);
    uint8_t b8 = (uint8_t)bits;
    uint16_t b16 = (uint16_t)bits;
    uint32_t b32 = (uint32_t)bits;
    const void *from = n == 1 ? (void *)&b8 : n == 2 ? (void *)&b16 : n == 4 ? (void *)&b32 : (void *)&bits;
    memcpy((char *)memory + i * n, from, n);
}

uint64_t bits_load(const void *memory, mlx_dtype dtype, size_t i)
{
    size_t n = dtype_bytes(dtype);
    uint8_t b8;
    uint16_t b16;
    uint32_t b32;
    uint64_t b64;
    void *to = n == 1 ? (void *)&b8 : n == 2 ? (void *)&b16 : n == 4 ? (void *)&b32 : (void *)&b64;
    memcpy(to, (const char *)memory + i * n, n);
    return n == 1 ? b8 : n == 2 ? b16 : n == 4 ? b32 : b64;
}

uint64_t bits_random(uint64_t *state, mlx_dtype dtype)
{
    static const uint32_t f32[] = { 0, 0x80000000, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345, 0x3F800000, 0xBF800000,
                                    0x7F7FFFFF, 0x00800000, 0x42B17218 };
    static const uint16_t f16[] = { 0, 0x8000, 1, 0x8001, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0x3C00, 0xBC00, 0x7BFF, 0x0400 };
    uint64_t r = random_next(state), pick = r >> 32;
    if (dtype == MLX_BOOL)
        return r & 1;
    if (dtype == MLX_FLOAT32 && pick % 8 == 0)
        return f32[pick / 8 % COUNT(f32)];
    if (dtype == MLX_BFLOAT16 && pick % 8 == 0)
        return f32[pick / 8 % COUNT(f32)] >> 16;
    if (dtype == MLX_FLOAT16 && pick % 8 == 0)
        return f16[pick / 8 % COUNT(f16)];
    if (dtype == MLX_FLOAT32 && pick % 2 == 0)           /* of a size at which functions say something */
        return (r & 0x807FFFFF) | (uint64_t)(116 + pick / 16 % 20) << 23;
    if (!dtype_is_float(dtype) && pick % 2 == 0)
        return r % 9 - 4;
    return r;
}

/* ---- The program ---- */

long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return 0;
    if (fscanf(file, "%*s %ld", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

bool sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return true;
#endif
#endif
    return false;
}

int client_run(int argc, char **argv, const char *group, const struct CMUnitTest *tests, size_t n_tests)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--filter") == 0)
            cmocka_set_test_filter(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            client_seed = strtoull(argv[i + 1], NULL, 0);
        else {
            fprintf(stderr, "usage: %s [--filter PATTERN] [--seed N]\n", argv[0]);
            return 2;
        }
    printf("seed %llu\n", (unsigned long long)client_seed);
    error_handler_default();
    stream = mlx_default_gpu_stream_new();
    if (!stream.ctx) {
        fprintf(stderr, "no stream: %s\n", error_message());
        return 1;
    }
    int failed = _cmocka_run_group_tests(group, tests, n_tests, NULL, NULL);
    mlx_stream_free(stream);
    if (fake_violations() > 0) {
        fprintf(stderr, "%ld violations of the driver's rules (FAKE_CUDA_STRICT=1 lists them)\n", fake_violations());
        return 1;
    }
    return failed || n_unclear ? 1 : 0;
}
