/* Writes the CUDA texts of kernels into a folder, NAME.cu each: of every primitive on every dtype that it computes in (others are
 * converted first), of every conversion, and of the graph files named. For what compilers make of them (test_kernel_text_nvrtc.py).
 * No GPU, and nothing of CUDA, is needed.
 *
 * usage: kernel_texts FOLDER [GRAPH_FILE...]. Graph files that do not compile, as some of the fuzzers' do, are passed over. */
#include "primitives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ol_device *device;
static const char *folder;
static int n_written;

/* The graph's kernel, if it is a graph; ends the program where the file cannot be written. */
static void write_text(const char *name, const char *graph, size_t n_bytes)
{
    ol_composite *composite;
    if (ol_compile_text(device, graph, n_bytes, &composite, NULL) != OL_OK)
        return;
    size_t n = ol_cuda_kernel_text(composite, NULL, 0);
    char *text = malloc(n + 1), path[4096];
    snprintf(path, sizeof path, "%s/%s.cu", folder, name);
    FILE *f = text && n ? fopen(path, "w") : NULL;
    if (f)
        fwrite(text, 1, ol_cuda_kernel_text(composite, text, n + 1), f);
    if (!f || fclose(f) != 0) {
        fprintf(stderr, "kernel_texts: %s cannot be written\n", path);
        exit(1);
    }
    free(text);
    ol_composite_destroy(composite);
    n_written++;
}

/* "v2 = add v0 v1" on inputs of one dtype; where's condition is a bool. */
static void write_primitive(const char *name, int arity, const char *dtype)
{
    char graph[512], title[64];
    int is_where = strcmp(name, "where") == 0, n;
    snprintf(title, sizeof title, "%s_%s", name, dtype);
    n = snprintf(graph, sizeof graph, "onelaunch graph 1\nname \"%s\"\n", title);
    for (int i = 0; i < arity; i++)
        n += snprintf(graph + n, sizeof graph - (size_t)n, "v%d = input %s\n", i, is_where && i == 0 ? "bool" : dtype);
    n += snprintf(graph + n, sizeof graph - (size_t)n, "v%d = %s", arity, name);
    for (int i = 0; i < arity; i++)
        n += snprintf(graph + n, sizeof graph - (size_t)n, " v%d", i);
    n += snprintf(graph + n, sizeof graph - (size_t)n, "\noutput v%d\n", arity);
    write_text(title, graph, (size_t)n);
}

static void write_conversion(const char *from, const char *to)
{
    char graph[512], title[64];
    snprintf(title, sizeof title, "astype_%s_%s", from, to);
    int n = snprintf(graph, sizeof graph, "onelaunch graph 1\nname \"%s\"\nv0 = input %s\nv1 = astype %s v0\noutput v1\n", title,
                     from, to);
    write_text(title, graph, (size_t)n);
}

static void write_file(const char *path)
{
    static char graph[1 << 20];
    const char *slash = strrchr(path, '/');
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "kernel_texts: %s cannot be read\n", path);
        exit(1);
    }
    size_t n = fread(graph, 1, sizeof graph, f);
    fclose(f);
    write_text(slash ? slash + 1 : path, graph, n);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: kernel_texts FOLDER [GRAPH_FILE...]\n");
        return 2;
    }
    folder = argv[1];
    if (ol_device_cpu(NULL, &device, NULL) != OL_OK)
        return 1;
    for (int p = 0; p < PRIMITIVE_COUNT; p++)
        for (int d = 0; d < OL_DTYPE_COUNT; d++) {
            ol_dtype operand, result;
            if (primitive_types((primitive)p, (ol_dtype)d, &operand, &result) && operand == (ol_dtype)d)
                write_primitive(primitive_table[p].name, primitive_table[p].arity, ol_dtype_name((ol_dtype)d));
        }
    for (int from = 0; from < OL_DTYPE_COUNT; from++)
        for (int to = 0; to < OL_DTYPE_COUNT; to++)
            write_conversion(ol_dtype_name((ol_dtype)from), ol_dtype_name((ol_dtype)to));
    for (int i = 2; i < argc; i++)
        write_file(argv[i]);
    printf("%d kernels\n", n_written);
    ol_device_destroy(device);
    return 0;
}
