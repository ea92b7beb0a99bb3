/* Fuzzes graph text. Any bytes may be a graph; what compiles must print to text that parses and prints alike, and must give the
 * same bits on small tensors by the composed path and by replay, at the lowest and the best SIMD level.
 * Seeds: fuzz/corpus/graph_text. */
#include "compare_replays.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print(const ol_composite *composite, ol_text_kind kind) {
    size_t n = ol_composite_text(composite, kind, NULL, 0);
    char *text = malloc(n + 1);
    if (!text || ol_composite_text(composite, kind, text, n + 1) != n || strlen(text) != n) {
        abort();
    }
    return text;
}

/* What is printed parses and prints alike. */
static void check_text(const ol_composite *composite, ol_text_kind kind) {
    ol_composite *again = NULL;
    ol_error error = { 0 };
    char *first = print(composite, kind);
    if (ol_compile_text(fuzz_device(0), first, strlen(first), &again, &error) != OL_OK) {
        fprintf(stderr, "%s\n%s: %s\n", first, error.operation, error.description);
        abort();
    }
    char *second = print(again, OL_TEXT_GRAPH);
    if (strcmp(first, second) != 0) {
        fprintf(stderr, "printed:\n%s\nparsed and printed:\n%s\n", first, second);
        abort();
    }
    ol_composite_destroy(again);
    free(first);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ol_composite *composite = NULL, *best = NULL;
    ol_error error = { 0 };
    ol_status status = ol_compile_text(fuzz_device(0), (const char *)data, size, &composite, &error);
    if (status != OL_OK) {
        if (composite || error.status != status || !error.description[0] || !error.operation[0]) {
            abort();
        }
        if (status == OL_ERROR_TEXT && strspn(error.description, "0123456789") == 0) {
            fprintf(stderr, "no place in: %s\n", error.description);
            abort();
        }
        return 0;
    }
    check_text(composite, OL_TEXT_GRAPH);
    check_text(composite, OL_TEXT_OPTIMIZED);
    free(print(composite, OL_TEXT_PROGRAM));
    free(print(composite, OL_TEXT_DOT));
    if (ol_compile_text(fuzz_device(1), (const char *)data, size, &best, &error) != OL_OK) {
        abort();
    }
    fuzz_replay(composite, best, data, size);
    ol_composite_destroy(best);
    ol_composite_destroy(composite);
    return 0;
}
