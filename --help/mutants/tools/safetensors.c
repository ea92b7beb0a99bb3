/* Reading safetensors files. See safetensors.h for what is promised.
 *
 * The header is parsed by jansson, which rejects duplicate keys, text that is not UTF-8, and integers beyond 64 bits. On top of
 * that: ranges are sorted and must cover the data from its first byte to its last without a gap or an overlap, as the
 * format demands, so no byte of a file is read twice or goes unnamed; lengths are computed with overflow checks. */
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PREFIX_BYTES = 8 };
static const uint64_t max_header_bytes = 100000000;          /* the limit of the format's reference implementation */

/* Every dtype the format has a name for; `dtype` is -1 where the library has none. */
static const struct dtype_row {
    const char *name;
    int32_t bits;
    int32_t dtype;
} dtype_rows[] = {
    { "BOOL", 8, OL_BOOL },       { "U8", 8, OL_UINT8 },        { "I8", 8, OL_INT8 },         { "U16", 16, OL_UINT16 },
    { "I16", 16, OL_INT16 },      { "F16", 16, OL_FLOAT16 },    { "BF16", 16, OL_BFLOAT16 },  { "U32", 32, OL_UINT32 },
    { "I32", 32, OL_INT32 },      { "F32", 32, OL_FLOAT32 },    { "U64", 64, OL_UINT64 },     { "I64", 64, OL_INT64 },
    { "F64", 64, -1 },            { "C64", 64, -1 },            { "F4", 4, -1 },              { "F6_E2M3", 6, -1 },
    { "F6_E3M2", 6, -1 },         { "F8_E5M2", 8, -1 },         { "F8_E4M3", 8, -1 },         { "F8_E8M0", 8, -1 },
    { "F8_E4M3FNUZ", 8, -1 },     { "F8_E5M2FNUZ", 8, -1 },
};
enum { N_DTYPE_ROWS = sizeof dtype_rows / sizeof dtype_rows[0] };

static const struct dtype_row *dtype_row(const char *name) {
    for (int i = 0; i < N_DTYPE_ROWS; i++) {
        if (strcmp(dtype_rows[i].name, name) == 0) {
            return &dtype_rows[i];
        }
    }
    return NULL;
}

const char *st_dtype_name(ol_dtype dtype) {
    for (int i = 0; i < N_DTYPE_ROWS; i++) {
        if (dtype_rows[i].dtype == (int32_t)dtype) {
            return dtype_rows[i].name;
        }
    }
    return "?";
}

bool st_fail(st_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return false;
}

/* The start of a message about one tensor; names may be of any length, a message is not. */
#define TENSOR "%s: tensor %.300s: "

/* A non-negative integer; jansson has already refused what does not fit 64 bits, and a real number is another type. */
static bool natural(const json_t *value, uint64_t *number) {
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *number = (uint64_t)json_integer_value(value);
    return true;
}

/* Shape to rank, extents and a count that fits int64. A zero extent makes the count zero however large the others are. */
static bool read_shape(const st_file *file, st_tensor *tensor, const json_t *shape, st_error *error) {
    bool empty = false, overflow = false;
    if (!json_is_array(shape) || json_array_size(shape) > INT32_MAX) {
        return st_fail(error, TENSOR "\"shape\" is not an array of integers", file->path, tensor->name);
    }
    tensor->rank = (int32_t)json_array_size(shape);
    tensor->n_elements = 1;
    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        uint64_t extent;
        if (!natural(json_array_get(shape, (size_t)axis), &extent)) {
            return st_fail(error, TENSOR "\"shape\" has an extent that is no integer from 0 on (axis %" PRId32 ")", file->path,
                        tensor->name, axis);
        }
        if (axis < OL_MAX_RANK) {
            tensor->shape[axis] = (int64_t)extent;
        }
        empty |= extent == 0;
        overflow |= __builtin_mul_overflow(tensor->n_elements, (int64_t)extent, &tensor->n_elements);
    }
    if (empty) {
        tensor->n_elements = 0;
    } else if (overflow) {
        return st_fail(error, TENSOR "\"shape\" has more elements than fit 64 bits", file->path, tensor->name);
    }
    return true;
}

/* The length a tensor must have, where its dtype is known. */
static bool check_length(const st_file *file, const st_tensor *tensor, st_error *error) {
    uint64_t bits;
    if (tensor->element_bits == 0) {
        return true;
    }
    if (__builtin_mul_overflow((uint64_t)tensor->n_elements, (uint64_t)tensor->element_bits, &bits)) {
        return st_fail(error, TENSOR "\"shape\" has more bytes than fit 64 bits", file->path, tensor->name);
    }
    if (bits % 8 != 0) {
        return st_fail(error, TENSOR "%" PRId64 " elements of %s do not fill whole bytes", file->path, tensor->name,
                    tensor->n_elements, tensor->dtype_name);
    }
    if (bits / 8 != tensor->n_bytes) {
        return st_fail(error, TENSOR "%" PRId64 " elements of %s take %" PRIu64 " bytes, but its range has %" PRIu64, file->path,
                    tensor->name, tensor->n_elements, tensor->dtype_name, bits / 8, tensor->n_bytes);
    }
    return true;
}

static bool read_tensor(const st_file *file, st_tensor *tensor, const char *name, const json_t *entry, const unsigned char *data,
                        uint64_t data_bytes, st_error *error) {
    uint64_t begin, end;
    const json_t *dtype = json_object_get(entry, "dtype");
    const json_t *offsets = json_object_get(entry, "data_offsets");

    *tensor = (st_tensor){ .name = name };
    if (!json_is_object(entry)) {
        return st_fail(error, TENSOR "its entry is not an object", file->path, name);
    }
    if (!json_is_string(dtype)) {
        return st_fail(error, TENSOR "\"dtype\" is not a string", file->path, name);
    }
    tensor->dtype_name = json_string_value(dtype);
    const struct dtype_row *row = dtype_row(tensor->dtype_name);
    tensor->element_bits = row ? row->bits : 0;
    if (!read_shape(file, tensor, json_object_get(entry, "shape"), error)) {
        return false;
    }
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 || !natural(json_array_get(offsets, 0), &begin) ||
        !natural(json_array_get(offsets, 1), &end)) {
        return st_fail(error, TENSOR "\"data_offsets\" is not a pair of integers from 0 on", file->path, name);
    }
    if (begin > end) {
        return st_fail(error, TENSOR "its range ends before it begins: [%" PRIu64 ", %" PRIu64 "]", file->path, name, begin, end);
    }
    if (end > data_bytes) {
        return st_fail(error, TENSOR "its range [%" PRIu64 ", %" PRIu64 "] leaves the file, which has %" PRIu64 " bytes of data",
                    file->path, name, begin, end, data_bytes);
    }
    tensor->data = data + begin;
    tensor->n_bytes = end - begin;
    return check_length(file, tensor, error);
}

static int by_place(const void *left, const void *right) {
    const st_tensor *x = left, *y = right;
    const unsigned char *x_end = x->data + x->n_bytes, *y_end = y->data + y->n_bytes;
    if (x->data != y->data) {
        return x->data < y->data ? -1 : 1;
    }
    return (x_end > y_end) - (x_end < y_end);
}

static int by_name(const void *left, const void *right) {
    return strcmp(((const st_tensor *)left)->name, ((const st_tensor *)right)->name);
}

/* The ranges must follow each other from the first byte of the data to the last. */
static bool check_cover(const st_file *file, const unsigned char *data, uint64_t data_bytes, st_error *error) {
    const unsigned char *next = data;
    for (size_t i = 0; i < file->n_tensors; i++) {
        const st_tensor *tensor = &file->tensors[i];
        if (tensor->data < next) {
            return st_fail(error, TENSOR "its range overlaps that of tensor %.300s", file->path, tensor->name,
                        i > 0 ? file->tensors[i - 1].name : "");
        }
        if (tensor->data > next) {
            return st_fail(error, TENSOR "%td bytes of data before it belong to no tensor", file->path, tensor->name,
                        tensor->data - next);
        }
        next = tensor->data + tensor->n_bytes;
    }
    if ((uint64_t)(next - data) != data_bytes) {
        return st_fail(error, "%s: the last %" PRIu64 " bytes of data belong to no tensor", file->path,
                    data_bytes - (uint64_t)(next - data));
    }
    return true;
}

static bool check_metadata(const st_file *file, json_t *metadata, st_error *error) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata)) {
        return st_fail(error, "%s: \"__metadata__\" is not an object", file->path);
    }
    json_object_foreach (metadata, key, value) {
        if (!json_is_string(value)) {
            return st_fail(error, "%s: \"__metadata__\": the value of \"%.300s\" is not a string", file->path, key);
        }
    }
    return true;
}

static bool read_tensors(st_file *file, const unsigned char *data, uint64_t data_bytes, st_error *error) {
    const char *name;
    json_t *entry;
    file->tensors = calloc(json_object_size(file->header) + 1, sizeof *file->tensors);
    if (!file->tensors) {
        return st_fail(error, "%s: out of memory for %zu tensors", file->path, json_object_size(file->header));
    }
    json_object_foreach (file->header, name, entry) {
        if (strcmp(name, "__metadata__") == 0) {
            if (!check_metadata(file, entry, error)) {
                return false;
            }
        } else if (!read_tensor(file, &file->tensors[file->n_tensors++], name, entry, data, data_bytes, error)) {
            return false;
        }
    }
    qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_place);
    if (!check_cover(file, data, data_bytes, error)) {
        return false;
    }
    qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_name);
    return true;
}

static bool read_header(st_file *file, const unsigned char *bytes, size_t n_bytes, st_error *error) {
    uint64_t header_bytes = 0;
    json_error_t reason;
    size_t blank = 0;
    while (blank < n_bytes && strchr(" \t\r\n", bytes[blank]) && bytes[blank]) {
        blank++;
    }
    /* As a length, text that starts so is over the limit: its last byte is not zero. */
    if (blank < n_bytes && bytes[blank] == '{' && (n_bytes < PREFIX_BYTES || bytes[PREFIX_BYTES - 1] != 0)) {
        return st_fail(error, "%s: not a safetensors file: it looks like JSON; an index of shards needs a name that ends in .json",
                       file->path);
    }
    if (n_bytes < PREFIX_BYTES) {
        return st_fail(error, "%s: not a safetensors file: %zu bytes, shorter than the length of a header", file->path, n_bytes);
    }
    for (int i = PREFIX_BYTES - 1; i >= 0; i--) {
        header_bytes = header_bytes << 8 | bytes[i];
    }
    if (header_bytes > max_header_bytes) {
        return st_fail(error, "%s: not a safetensors file: a header of %" PRIu64 " bytes is over the limit of %" PRIu64,
                       file->path, header_bytes, max_header_bytes);
    }
    if (header_bytes > n_bytes - PREFIX_BYTES) {
        return st_fail(error, "%s: truncated: the header has %" PRIu64 " bytes, the file %zu after its length", file->path,
                    header_bytes, n_bytes - PREFIX_BYTES);
    }
    if (header_bytes == 0 || bytes[PREFIX_BYTES] != '{') {
        return st_fail(error, "%s: not a safetensors file: the header is not a JSON object", file->path);
    }
    file->header = json_loadb((const char *)bytes + PREFIX_BYTES, (size_t)header_bytes, JSON_REJECT_DUPLICATES, &reason);
    if (!file->header) {
        return st_fail(error, "%s: the header is not valid JSON: %s (byte %d)", file->path, reason.text, reason.position);
    }
    return read_tensors(file, bytes + PREFIX_BYTES + header_bytes, n_bytes - PREFIX_BYTES - header_bytes, error);
}

st_file *st_file_new(const char *path, st_error *error) {
    st_file *file = calloc(1, sizeof *file);
    if (file && (file->path = strdup(path))) {
        return file;
    }
    free(file);
    st_fail(error, "%s: out of memory", path);
    return NULL;
}

bool st_parse(const char *path, const void *bytes, size_t n_bytes, st_file **out, st_error *error) {
    st_file *file = st_file_new(path, error);
    if (!file) {
        return false;
    }
    if (!read_header(file, bytes, n_bytes, error)) {
        st_close(file);
        return false;
    }
    *out = file;
    return true;
}

static const char *kind_of(mode_t mode) {
    return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static bool map(st_file *file, int descriptor, st_error *error) {
    struct stat status;
    if (fstat(descriptor, &status) != 0) {
        return st_fail(error, "%s: %s", file->path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return st_fail(error, "%s: %s, not a file", file->path, kind_of(status.st_mode));
    }
    if (status.st_size == 0) {
        return st_fail(error, "%s: not a safetensors file: it is empty", file->path);
    }
    if ((uint64_t)status.st_size > PTRDIFF_MAX) {
        return st_fail(error, "%s: too large for this machine's address space", file->path);
    }
    file->n_bytes = (size_t)status.st_size;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    void *mapping = mmap(NULL, file->n_bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping == MAP_FAILED) {
        return st_fail(error, "%s: cannot be mapped: %s", file->path, strerror(errno));
    }
    file->mapping = mapping;
    return true;
}

bool st_map(const char *path, st_file **out, st_error *error) {
    st_file *file = st_file_new(path, error);
    if (!file) {
        return false;
    }
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);      /* a pipe must not make us wait */
    if (descriptor < 0) {
        st_fail(error, "%s: %s", path, strerror(errno));
        goto fail;
    }
    bool mapped = map(file, descriptor, error);
    close(descriptor);
    if (!mapped) {
        goto fail;
    }
    *out = file;
    return true;
fail:
    st_close(file);
    return false;
}

bool st_read(st_file *file, st_error *error) {
    return read_header(file, file->mapping, file->n_bytes, error);
}

bool st_open(const char *path, st_file **out, st_error *error) {
    st_file *file;
    if (!st_map(path, &file, error)) {
        return false;
    }
    if (!st_read(file, error)) {
        st_close(file);
        return false;
    }
    *out = file;
    return true;
}

void st_close(st_file *file) {
    if (!file) {
        return;
    }
    free(file->tensors);
    json_decref(file->header);
    if (file->mapping) {
        munmap(file->mapping, file->n_bytes);
    }
    free(file->path);
    free(file);
}

const st_tensor *st_find(const st_file *file, const char *name) {
    const st_tensor key = { .name = name };
    return file->n_tensors ? bsearch(&key, file->tensors, file->n_tensors, sizeof key, by_name) : NULL;
}

bool st_view(const st_file *file, const st_tensor *tensor, ol_tensor *view, st_error *error) {
    const struct dtype_row *row = dtype_row(tensor->dtype_name);
    if (tensor->unusable) {
        return st_fail(error, TENSOR "dtype %s %s", file->path, tensor->name, tensor->dtype_name, tensor->unusable);
    }
    if (!row) {
        return st_fail(error, TENSOR "unknown dtype \"%.100s\"", file->path, tensor->name, tensor->dtype_name);
    }
    if (row->dtype < 0) {
        return st_fail(error, TENSOR "dtype %s cannot be computed with here", file->path, tensor->name, row->name);
    }
    if (tensor->rank > OL_MAX_RANK) {
        return st_fail(error, TENSOR "rank %" PRId32 " is above %d", file->path, tensor->name, tensor->rank, OL_MAX_RANK);
    }
    *view = (ol_tensor){ .data = (void *)tensor->data, .dtype = (ol_dtype)row->dtype, .rank = tensor->rank };
    int64_t stride = 1;
    for (int32_t axis = tensor->rank - 1; axis >= 0; axis--) {
        view->shape[axis] = tensor->shape[axis];
        view->strides[axis] = stride;
        if (__builtin_mul_overflow(stride, tensor->shape[axis], &stride)) {
            stride = 0;                /* only in an empty tensor, where no stride is ever used */
        }
    }
    return true;
}
