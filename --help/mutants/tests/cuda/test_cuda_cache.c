/* The kernel cache as a user of devices sees it (A56 to A59): what one device or process compiled the next one finds; what is
 * damaged, refused by the driver or made for something else is compiled again; and no graph gets another's kernel. */
#include "cuda_harness.h"

#include "../cache_cases.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- A folder and a device of its own for each test ---- */

static int set_up(void **state)
{
    return cache_set_up(state) | cuda_set_up(state);
}

static int tear_down(void **state)
{
    return cuda_tear_down(state) | cache_tear_down(state);
}

#define CUDA_CACHE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- Graphs ---- */

typedef struct variant {
    ol_dtype dtype;
    uint32_t bits;                       /* of a constant that is added */
    int swaps, n_outputs;
} variant;

static int build_variant(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    const variant *v = user;
    ol_value sum = ol_add(g, in[0], ol_constant_bits(g, OL_FLOAT32, &v->bits)), other = ol_negative(g, in[0]);
    out[0] = v->swaps ? other : sum;
    if (v->n_outputs > 1)
        out[1] = v->swaps ? sum : other;
    return 0;
}

static const variant usual = { OL_FLOAT32, 0x3f800000, 0, 2 };

static ol_status compile(ol_device *device, const variant *v, ol_composite **c, ol_error *error)
{
    ol_builder builder = { .build = build_variant, .user = (void *)(uintptr_t)v, .n_inputs = 1, .n_outputs = v->n_outputs,
                           .name = "variant" };
    return ol_compile(device, &builder, &v->dtype, c, error);
}

/* Compiles for a new device, and whether it gives x + 1 and -x; without assertions. */
static int usual_works(ol_error *error)
{
    ol_device *device;
    ol_composite *c = NULL;
    float x = 2, y[2] = { 0, 0 };
    void *memory = NULL;
    ol_stream in = (ol_stream)(uintptr_t)2;                      /* the thread's default stream, not the legacy one */
    if (ol_device_cuda(0, NULL, &device, error) != OL_OK)
        return 0;
    int ok = compile(device, &usual, &c, error) == OL_OK && ol_device_allocate(device, 12, &memory, error) == OL_OK;
    ol_tensor t[3] = { vector_of(memory, OL_FLOAT32, 1), vector_of((float *)memory + 1, OL_FLOAT32, 1),
                       vector_of((float *)memory + 2, OL_FLOAT32, 1) };
    ok = ok && ol_device_copy(device, in, memory, &x, 4, error) == OL_OK && ol_replay(c, in, t, t + 1, error) == OL_OK &&
         ol_device_copy(device, in, y, t[1].data, 8, error) == OL_OK && ol_stream_synchronize(device, in, error) == OL_OK;
    ol_device_free(device, memory, 12, NULL);
    ol_composite_destroy(c);
    ol_device_destroy(device);
    return ok && y[0] == 3 && y[1] == -2;
}

/* Fails unless it works, having compiled so often (where that can be counted). */
static void assert_works(size_t n_compiled)
{
    ol_error error = { 0 };
    size_t before = compilations();
    if (!usual_works(&error))
        fail_msg("%s: %s", error.operation, error.description);
    if (fake_is_loaded())
        assert_int_equal(compilations() - before, n_compiled);
}

/* The path of the only entry. */
static const char *only_entry(void)
{
    static char path[PATH_MAX];
    DIR *d = opendir(folder);
    assert_non_null(d);
    int n = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%.3000s/%s", folder, e->d_name);
            n++;
        }
    closedir(d);
    assert_int_equal(n, 1);
    return path;
}

/* ---- Hits ---- */

static int work(void)
{
    ol_error error = { 0 };
    if (!usual_works(&error)) {
        printf("%s: %s\n", error.operation, error.description);
        return 100;
    }
    return (int)compilations();
}

static void assert_child(const char *const *environment, int n_compiled)
{
    char output[CHILD_OUTPUT];
    int code = run_child("work", environment, output);
    if (*output || (code != n_compiled && fake_is_loaded()) || code == 100)
        fail_msg("a child compiled %d times, expected %d: %s", code, n_compiled, output);
}

static void the_next_device_and_process_hit(void **state)
{
    (void)state;
    assert_works(1);
    assert_int_equal(list().n_sound, 1);
    assert_works(0);
    for (int i = 0; i < 3; i++)
        assert_child((const char *const[]){ NULL }, 0);          /* A58: whatever the addresses of a process */
    assert_int_equal(list().n_sound, 1);
    /* In one device the image itself is kept. */
    ol_composite *c[2];
    ol_error error;
    assert_ok(compile(cuda, &usual, &c[0], &error), &error);
    if (fake_is_loaded())
        fake_forget();
    assert_ok(compile(cuda, &usual, &c[1], &error), &error);
    if (fake_is_loaded())
        assert_int_equal(fake_calls("cuModuleLoadData"), 0);
    ol_composite_destroy(c[0]);
    ol_composite_destroy(c[1]);
}

static void a_listing_names_what_was_compiled(void **state)
{
    (void)state;
    assert_works(1);
    counts c = list();
    assert_int_equal(c.n_sound, 1);
    assert_int_equal(c.n_damaged, 0);
    assert_string_equal(c.order[0], "ol_variant");
}

/* ---- A58: keys ---- */

static void A58_different_graphs_have_different_keys(void **state)
{
    static const variant variants[] = {
        { OL_FLOAT32, 0x3f800000, 0, 2 }, { OL_FLOAT32, 0x3f800001, 0, 2 }, { OL_FLOAT32, 0x00000000, 0, 2 },
        { OL_FLOAT32, 0x80000000, 0, 2 }, { OL_FLOAT32, 0x3f800000, 1, 2 }, { OL_FLOAT32, 0x3f800000, 0, 1 },
        { OL_FLOAT32, 0x3f800000, 1, 1 }, { OL_FLOAT16, 0x3f800000, 0, 2 },
        { OL_BFLOAT16, 0x3f800000, 0, 2 }, { OL_INT32, 0x3f800000, 0, 2 }, { OL_UINT32, 0x3f800000, 0, 2 },
    };
    ol_error error;
    (void)state;
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < COUNT(variants); i++) {
            ol_device *device;
            ol_composite *c;
            size_t before = compilations();
            assert_ok(ol_device_cuda(0, NULL, &device, &error), &error);
            assert_ok(compile(device, &variants[i], &c, &error), &error);
            ol_composite_destroy(c);
            ol_device_destroy(device);
            if (fake_is_loaded())
                assert_int_equal(compilations() - before, round == 0);
            assert_int_equal(list().n_sound, round ? COUNT(variants) : i + 1);
        }
}

/* ---- A57: damage ---- */

static void A57_damaged_entries_are_replaced(void **state)
{
    static unsigned char bytes[4 << 20];
    (void)state;
    assert_works(1);
    size_t n = get_file(only_entry(), bytes, sizeof bytes);
    for (int damage = 0; damage < 6; damage++) {
        size_t left = damage == 0 ? 0 : damage == 1 ? n / 2 : damage == 2 ? n - 1 : n;
        size_t flipped = damage == 3 ? 9 : damage == 4 ? n / 2 : damage == 5 ? n - 1 : n;
        if (flipped < n)
            bytes[flipped] ^= 0x10;
        put_file(only_entry(), bytes, left);
        if (flipped < n)
            bytes[flipped] ^= 0x10;
        assert_works(1);
        assert_works(0);
        assert_int_equal(list().n_sound, 1);
        assert_int_equal(list().n_damaged, 0);
    }
    bytes[n] = 'x';
    put_file(only_entry(), bytes, n + 1);
    assert_works(1);
    assert_works(0);
}

/* A sound entry of machine code that the driver refuses: the work of another driver, or of a fault that kept its checksum. */
static void what_the_driver_refuses_is_replaced(void **state)
{
    static unsigned char bytes[4 << 20];
    (void)state;
    assert_works(1);
    get_file(only_entry(), bytes, sizeof bytes);
    uint64_t n_key;
    memcpy(&n_key, bytes + 16, sizeof n_key);
    text key = empty_text(), nonsense = text_from("this is no machine code, and long enough to have the head of an image:"
                                                " ...........................");
    text_add_bytes(&key, (const char *)bytes + 32, n_key);
    assert_non_null(strstr(key.bytes, "architecture sm_"));
    cache_write(&key, &nonsense);
    assert_hit(&key, &nonsense);
    assert_works(1);
    assert_works(0);
    assert_int_equal(list().n_sound, 1);
    text_free(&key);
    text_free(&nonsense);
}

/* ---- A56: another machine ---- */

static void A56_other_architectures_and_compilers_miss(void **state)
{
    static const char *const settings[][3] = {
        { "FAKE_CUDA_CAPABILITY=80", NULL }, { "FAKE_CUDA_CAPABILITY=86", NULL }, { "FAKE_CUDA_CAPABILITY=87", NULL },
        { "FAKE_NVRTC_VERSION=12.9", NULL },
        { "FAKE_NVRTC_VERSION=13.1", NULL }, { "FAKE_CUDA_CAPABILITY=89", "FAKE_NVRTC_ARCHITECTURES=80 86", NULL },
    };
    (void)state;
    need_fake();
    assert_works(1);
    for (size_t i = 0; i < COUNT(settings); i++) {
        assert_child(settings[i], 1);
        assert_child(settings[i], 0);
        assert_int_equal(list().n_sound, i + 2);
    }
    assert_works(0);
    /* The same capability where the compiler has learnt it. */
    assert_child((const char *const[]){ "FAKE_CUDA_CAPABILITY=89", NULL }, 1);
    /* A newer driver takes the same code. */
    assert_child((const char *const[]){ "FAKE_CUDA_DRIVER=13010", NULL }, 0);
}

/* ---- A59: many at once ---- */

static void A59_many_processes_and_a_cold_cache(void **state)
{
    enum { N = 4 };
    (void)state;
    for (int round = 0; round < 3; round++) {
        pid_t children[N];
        char program[4096];
        ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
        assert_true(length > 0);
        program[length] = '\0';
        assert_ok(ol_cache_clear(NULL, NULL, NULL), NULL);
        for (int i = 0; i < N; i++) {
            children[i] = fork();
            assert_true(children[i] >= 0);
            if (children[i] == 0) {
                alarm(120);
                execl(program, program, "--child", "work", (char *)NULL);
                _exit(126);
            }
        }
        for (int i = 0; i < N; i++) {
            int status = 0;
            assert_int_equal(waitpid(children[i], &status, 0), children[i]);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        }
        assert_int_equal(list().n_sound, 1);
        assert_int_equal(list().n_damaged, 0);
        assert_works(0);
    }
}

/* ---- Without one ---- */

static void no_cache_is_no_fault(void **state)
{
    (void)state;
    setenv("ONELAUNCH_CACHE", "off", 1);
    assert_works(1);
    assert_works(1);
    setenv("ONELAUNCH_CACHE", "/proc/nowhere", 1);
    assert_works(1);
    setenv("ONELAUNCH_CACHE", folder, 1);
    setenv("ONELAUNCH_CACHE_MIB", "0", 1);
    assert_works(1);
    assert_works(1);
    unsetenv("ONELAUNCH_CACHE_MIB");
    assert_works(1);
    assert_works(0);
    assert_int_equal(chmod(folder, 0777), 0);                    /* anyone's: not to be trusted */
    assert_works(1);
    assert_works(1);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_works(0);
}

int main(int argc, char **argv)
{
    static const child_program children[] = { { "work", work }, { NULL, NULL } };
    const struct CMUnitTest tests[] = {
        CUDA_CACHE_TEST(the_next_device_and_process_hit), CUDA_CACHE_TEST(a_listing_names_what_was_compiled),
        CUDA_CACHE_TEST(A58_different_graphs_have_different_keys), CUDA_CACHE_TEST(A57_damaged_entries_are_replaced),
        CUDA_CACHE_TEST(what_the_driver_refuses_is_replaced), CUDA_CACHE_TEST(A56_other_architectures_and_compilers_miss),
        CUDA_CACHE_TEST(A59_many_processes_and_a_cold_cache), CUDA_CACHE_TEST(no_cache_is_no_fault),
    };
    child_programs = children;
    return CUDA_RUN(argc, argv, tests);
}
