/* Fuzzes the GGUF reader: any bytes are a file. What opens must keep its promises: every tensor lies in the data and apart from the
 * others, a view's length is that of its range. Seeds: fuzz/corpus/gguf. */
#include "../tools/gguf.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    st_file *file = NULL;
    st_error error;
    uint64_t covered = 0;
    int64_t number;
    volatile unsigned char last;           /* so that the reads are not optimised away */
    if (!gguf_parse("input", data, size, &file, &error)) {
        return 0;
    }
    for (size_t i = 0; i < file->n_tensors; i++) {
        const st_tensor *tensor = &file->tensors[i];
        ol_tensor view;
        if (st_find(file, tensor->name) != tensor) {
            abort();
        }
        if (tensor->n_bytes > 0) {
            last = tensor->data[0];
            last = tensor->data[tensor->n_bytes - 1];
        }
        covered += tensor->n_bytes;
        if (st_view(file, tensor, &view, &error)) {
            uint64_t n_bytes = (uint64_t)tensor->n_elements * (uint64_t)(tensor->element_bits / 8);
            if (n_bytes != tensor->n_bytes || view.rank != tensor->rank || view.data != tensor->data) {
                abort();
            }
        }
    }
    if (covered > size) {
        abort();
    }
    gguf_string(file, "general.architecture");
    gguf_number(file, "general.alignment", &number);
    (void)last;
    st_close(file);
    return 0;
}
