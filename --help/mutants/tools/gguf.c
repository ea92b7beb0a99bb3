/* See gguf.h. */
#include "gguf.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC_BYTES = 4, MAX_NAME_BYTES = 65535, MAX_KEPT_STRING = 4096, MAX_NESTING = 4, DEFAULT_ALIGNMENT = 32 };

/* What is left of the header. */
struct cursor {
    const unsigned char *at;
    size_t left;
    const st_file *file;
    st_error *error;
};

/* ---- Types of values and tensors ------------------------------------------------------------------------------- */

enum value_type { VALUE_UINT8, VALUE_INT8, VALUE_UINT16, VALUE_INT16, VALUE_UINT32, VALUE_INT32, VALUE_FLOAT32, VALUE_BOOL, VALUE_STRING, VALUE_ARRAY,
                  VALUE_UINT64, VALUE_INT64, VALUE_FLOAT64, N_VALUE_TYPES };

/* Bytes of a scalar; 0: a string or an array. */
static const size_t value_bytes[N_VALUE_TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

/* Elements of a block, and bytes that it takes; 0 elements: the length is not known here (blocks of Q8_1 have changed their size). */
static const struct type_row {
    uint32_t number;
    const char *name;
    uint16_t elements, bytes;
} type_rows[] = {
    { 0, "F32", 1, 4 },          { 1, "F16", 1, 2 },          { 2, "Q4_0", 32, 18 },       { 3, "Q4_1", 32, 20 },       { 6, "Q5_0", 32, 22 },
    { 7, "Q5_1", 32, 24 },       { 8, "Q8_0", 32, 34 },       { 9, "Q8_1", 0, 0 },         { 10, "Q2_K", 256, 84 },     { 11, "Q3_K", 256, 110 },
    { 12, "Q4_K", 256, 144 },    { 13, "Q5_K", 256, 176 },    { 14, "Q6_K", 256, 210 },    { 15, "Q8_K", 256, 292 },    { 16, "IQ2_XXS", 256, 66 },
    { 17, "IQ2_XS", 256, 74 },   { 18, "IQ3_XXS", 256, 98 },  { 19, "IQ1_S", 256, 50 },    { 20, "IQ4_NL", 32, 18 },    { 21, "IQ3_S", 256, 110 },
    { 22, "IQ2_S", 256, 82 },    { 23, "IQ4_XS", 256, 136 },  { 24, "I8", 1, 1 },          { 25, "I16", 1, 2 },         { 26, "I32", 1, 4 },
    { 27, "I64", 1, 8 },         { 28, "F64", 1, 8 },         { 29, "IQ1_M", 256, 56 },    { 30, "BF16", 1, 2 },        { 34, "TQ1_0", 256, 54 },
    { 35, "TQ2_0", 256, 66 },    { 39, "MXFP4", 32, 17 },     { 40, "NVFP4", 64, 36 },     { 41, "Q1_0", 128, 18 },
};

static const struct type_row *type_row(uint32_t number) {
    for (size_t i = 0; i < sizeof type_rows / sizeof type_rows[0]; i++) {
        if (type_rows[i].number == number) {
            return &type_rows[i];
        }
    }
    return NULL;
}

/* ---- Bytes ----------------------------------------------------------------------------------------------------- */

static bool truncated(struct cursor *c, const char *what) {
    return st_fail(c->error, "%s: truncated: the file ends within %s", c->file->path, what);
}

/* An integer of so many bytes, little-endian. */
static bool take(struct cursor *c, size_t n_bytes, const char *what, uint64_t *number) {
    if (n_bytes > c->left) {
        return truncated(c, what);
    }
    *number = 0;
    for (size_t i = n_bytes; i-- > 0;) {
        *number = *number << 8 | c->at[i];
    }
    c->at += n_bytes;
    c->left -= n_bytes;
    return true;
}

static bool take32(struct cursor *c, const char *what, uint32_t *number) {
    uint64_t wide = 0;
    bool ok = take(c, 4, what, &wide);
    *number = (uint32_t)wide;
    return ok;
}

/* A string's bytes, where they lie. */
static bool take_string(struct cursor *c, const char *what, const unsigned char **text, size_t *n_bytes) {
    uint64_t length;
    if (!take(c, 8, what, &length)) {
        return false;
    }
    if (length > c->left) {
        return st_fail(c->error, "%s: truncated: %s has %" PRIu64 " bytes, the file %zu after its length", c->file->path, what, length, c->left);
    }
    *text = c->at;
    *n_bytes = (size_t)length;
    c->at += length;
    c->left -= (size_t)length;
    return true;
}

/* The name of something, as a C string in name[MAX_NAME_BYTES + 1]. */
static bool take_name(struct cursor *c, const char *what, char *name) {
    const unsigned char *text;
    size_t n_bytes;
    if (!take_string(c, what, &text, &n_bytes)) {
        return false;
    }
    if (n_bytes == 0 || n_bytes > MAX_NAME_BYTES) {
        return st_fail(c->error, "%s: %s has %zu bytes, expected 1 to %d", c->file->path, what, n_bytes, MAX_NAME_BYTES);
    }
    if (memchr(text, 0, n_bytes)) {
        return st_fail(c->error, "%s: %s has a zero byte in it", c->file->path, what);
    }
    memcpy(name, text, n_bytes);
    name[n_bytes] = 0;
    return true;
}

/* Puts a value under a name that is not there yet; takes the value. jansson refuses names that are not UTF-8. */
static bool put(struct cursor *c, json_t *object, const char *what, const char *name, json_t *value) {
    if (json_object_get(object, name)) {
        json_decref(value);
        return st_fail(c->error, "%s: %s %.300s is there twice", c->file->path, what, name);
    }
    if (json_object_set_new(object, name, value) != 0) {
        return st_fail(c->error, "%s: %s is not UTF-8, or memory ran out", c->file->path, what);
    }
    return true;
}

/* ---- Metadata -------------------------------------------------------------------------------------------------- */

static bool skip_array(struct cursor *c, const char *key, int depth) {
    uint32_t type;
    uint64_t count;
    if (!take32(c, "an array's type", &type) || !take(c, 8, "an array's length", &count)) {
        return false;
    }
    if (type >= N_VALUE_TYPES) {
        return st_fail(c->error, "%s: key %.300s: an array of the unknown type %" PRIu32, c->file->path, key, type);
    }
    if (depth == MAX_NESTING) {
        return st_fail(c->error, "%s: key %.300s: arrays nested deeper than %d", c->file->path, key, MAX_NESTING);
    }
    if (value_bytes[type] > 0) {
        if (count > c->left / value_bytes[type]) {
            return st_fail(c->error, "%s: truncated: key %.300s: an array of %" PRIu64 " elements of %zu bytes, but %zu bytes are left", c->file->path, key, count,
                           value_bytes[type], c->left);
        }
        c->at += count * value_bytes[type];
        c->left -= (size_t)count * value_bytes[type];
        return true;
    }
    for (uint64_t i = 0; i < count; i++) {         /* each takes bytes of the file, so this ends */
        const unsigned char *text;
        size_t n_bytes;
        if (!(type == VALUE_STRING ? take_string(c, "a string of an array", &text, &n_bytes) : skip_array(c, key, depth + 1))) {
            return false;
        }
    }
    return true;
}

/* A scalar as JSON. What JSON has no number for, and strings that nothing here asks for, are null: the key is there. */
static bool take_value(struct cursor *c, const char *key, uint32_t type, json_t **value) {
    uint64_t bits = 0;
    const unsigned char *text;
    size_t n_bytes;
    *value = NULL;
    if (type == VALUE_ARRAY) {
        if (!skip_array(c, key, 0)) {
            return false;
        }
    } else if (type == VALUE_STRING) {
        if (!take_string(c, "a string", &text, &n_bytes)) {
            return false;
        }
        *value = n_bytes <= MAX_KEPT_STRING && !memchr(text, 0, n_bytes) ? json_stringn((const char *)text, n_bytes) : NULL;
    } else if (!take(c, value_bytes[type], "a value", &bits)) {
        return false;
    } else if (type == VALUE_BOOL) {
        if (bits > 1) {
            return st_fail(c->error, "%s: key %.300s: a bool of %" PRIu64 ", expected 0 or 1", c->file->path, key, bits);
        }
        *value = json_boolean(bits);
    } else if (type != VALUE_FLOAT32 && type != VALUE_FLOAT64) {
        int unused = 64 - 8 * (int)value_bytes[type];
        bool is_signed = type == VALUE_INT8 || type == VALUE_INT16 || type == VALUE_INT32 || type == VALUE_INT64;
        int64_t number = is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
        *value = is_signed || number >= 0 ? json_integer(number) : NULL;
    }
    if (!*value) {
        *value = json_null();
    }
    return true;
}

static bool read_metadata(struct cursor *c, json_t *metadata, uint64_t count, char *name) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t type;
        json_t *value;
        if (!take_name(c, "a key", name) || !take32(c, "a value's type", &type)) {
            return false;
        }
        if (type >= N_VALUE_TYPES) {
            return st_fail(c->error, "%s: key %.300s: unknown type %" PRIu32, c->file->path, name, type);
        }
        if (!take_value(c, name, type, &value) || !put(c, metadata, "key", name, value)) {
            return false;
        }
    }
    return true;
}

/* A power of two, as every reader wants it. */
static bool find_alignment(const struct cursor *c, const json_t *metadata, uint64_t *alignment) {
    const json_t *value = json_object_get(metadata, "general.alignment");
    json_int_t number = value ? json_integer_value(value) : DEFAULT_ALIGNMENT;
    if (number < 1 || number > UINT32_MAX || (number & (number - 1)) != 0) {
        return st_fail(c->error, "%s: key general.alignment is no power of two of 32 bits", c->file->path);
    }
    *alignment = (uint64_t)number;
    return true;
}

/* ---- Tensors --------------------------------------------------------------------------------------------------- */

/* The start of a message about one tensor. */
#define TENSOR "%s: tensor %.300s: "

static bool read_shape(struct cursor *c, st_tensor *tensor) {
    uint32_t rank;
    bool empty = false, overflow = false;
    if (!take32(c, "a tensor's rank", &rank)) {
        return false;
    }
    if (rank > OL_MAX_RANK) {
        return st_fail(c->error, TENSOR "rank %" PRIu32 " is above %d", c->file->path, tensor->name, rank, OL_MAX_RANK);
    }
    tensor->rank = (int32_t)rank;
    tensor->n_elements = 1;
    for (int32_t axis = tensor->rank; axis-- > 0;) {
        uint64_t extent;
        if (!take(c, 8, "a tensor's shape", &extent)) {
            return false;
        }
        if (extent > INT64_MAX) {
            return st_fail(c->error, TENSOR "an extent of %" PRIu64 " does not fit 63 bits", c->file->path, tensor->name, extent);
        }
        tensor->shape[axis] = (int64_t)extent;
        empty |= extent == 0;
        overflow |= __builtin_mul_overflow(tensor->n_elements, (int64_t)extent, &tensor->n_elements);
    }
    if (empty) {
        tensor->n_elements = 0;
    } else if (overflow) {
        return st_fail(c->error, TENSOR "more elements than fit 63 bits", c->file->path, tensor->name);
    }
    return true;
}

/* Name of the type, and bytes from it; those of an unknown type stay 0. */
static bool read_type(struct cursor *c, st_tensor *tensor, json_t *names) {
    uint32_t number;
    if (!take32(c, "a tensor's type", &number)) {
        return false;
    }
    const struct type_row *row = type_row(number);
    if (!row) {
        char text[24];
        snprintf(text, sizeof text, "number %" PRIu32, number);
        if (!json_object_get(names, text) && json_object_set_new(names, text, json_string(text)) != 0) {
            return st_fail(c->error, "%s: out of memory", c->file->path);
        }
        tensor->dtype_name = json_string_value(json_object_get(names, text));
        tensor->unusable = "is not known; expected F32, F16 or BF16";
        return true;
    }
    tensor->dtype_name = row->name;
    if (row->elements != 1) {
        tensor->unusable = "is quantised; expected F32, F16 or BF16";
    } else {
        tensor->element_bits = 8 * row->bytes;
    }
    /* Blocks lie along the fastest axis. */
    int64_t fastest = tensor->rank ? tensor->shape[tensor->rank - 1] : 1;
    if (row->elements > 1 && fastest % row->elements != 0) {
        return st_fail(c->error, TENSOR "rows of %" PRId64 " elements are no whole blocks of %d of %s", c->file->path, tensor->name, fastest, row->elements, row->name);
    }
    if (row->elements > 0 && __builtin_mul_overflow((uint64_t)(tensor->n_elements / row->elements), (uint64_t)row->bytes, &tensor->n_bytes)) {
        return st_fail(c->error, TENSOR "more bytes than fit 64 bits", c->file->path, tensor->name);
    }
    return true;
}

/* Appends one, with its offset in place of its data. */
static bool read_tensor(struct cursor *c, st_file *file, size_t *capacity, uint64_t **offsets, json_t *names, json_t *types, char *name) {
    if (file->n_tensors == *capacity) {
        size_t more = *capacity ? 2 * *capacity : 64;
        st_tensor *tensors = realloc(file->tensors, more * sizeof *tensors);
        file->tensors = tensors ? tensors : file->tensors;
        uint64_t *grown = realloc(*offsets, more * sizeof *grown);
        *offsets = grown ? grown : *offsets;
        if (!tensors || !grown) {
            return st_fail(c->error, "%s: out of memory for more than %zu tensors", file->path, *capacity);
        }
        *capacity = more;
    }
    if (!take_name(c, "a tensor's name", name) || !put(c, names, "tensor", name, json_null())) {
        return false;
    }
    st_tensor *tensor = &file->tensors[file->n_tensors];
    *tensor = (st_tensor){ .name = json_object_iter_key(json_object_iter_at(names, name)) };
    if (!read_shape(c, tensor) || !read_type(c, tensor, types) || !take(c, 8, "a tensor's offset", &(*offsets)[file->n_tensors])) {
        return false;
    }
    file->n_tensors++;
    return true;
}

/* From offsets to data. */
static bool place(struct cursor *c, st_file *file, const uint64_t *offsets, uint64_t alignment, const unsigned char *start) {
    size_t header = (size_t)(c->at - start), padding = (size_t)(-(uint64_t)header & (alignment - 1)), data_bytes = c->left > padding ? c->left - padding : 0;
    const unsigned char *data = c->left > padding ? c->at + padding : c->at + c->left;
    for (size_t i = 0; i < file->n_tensors; i++) {
        st_tensor *tensor = &file->tensors[i];
        if (offsets[i] % alignment != 0) {
            return st_fail(c->error, TENSOR "its offset %" PRIu64 " is no multiple of the alignment %" PRIu64, file->path, tensor->name, offsets[i], alignment);
        }
        if (offsets[i] > data_bytes || tensor->n_bytes > data_bytes - offsets[i]) {
            return st_fail(c->error, TENSOR "%" PRIu64 " bytes from %" PRIu64 " on leave the file, which has %zu bytes of data", file->path, tensor->name,
                           tensor->n_bytes, offsets[i], data_bytes);
        }
        tensor->data = data + offsets[i];
    }
    return true;
}

static int by_place(const void *left, const void *right) {
    const st_tensor *x = left, *y = right;
    if (x->data != y->data) {
        return x->data < y->data ? -1 : 1;
    }
    return (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

static int by_name(const void *left, const void *right) {
    return strcmp(((const st_tensor *)left)->name, ((const st_tensor *)right)->name);
}

/* No byte may belong to two tensors; gaps are padding. */
static bool check_apart(struct cursor *c, st_file *file) {
    if (file->n_tensors > 0) {
        qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_place);
    }
    for (size_t i = 1; i < file->n_tensors; i++) {
        const st_tensor *before = &file->tensors[i - 1], *tensor = &file->tensors[i];
        if ((uint64_t)(tensor->data - before->data) < before->n_bytes) {
            return st_fail(c->error, TENSOR "its data overlap those of tensor %.300s", file->path, tensor->name, before->name);
        }
    }
    if (file->n_tensors > 0) {
        qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_name);
    }
    return true;
}

/* ---- Files ----------------------------------------------------------------------------------------------------- */

bool gguf_recognise(const void *bytes, size_t n_bytes) {
    return n_bytes >= MAGIC_BYTES && memcmp(bytes, "GGUF", MAGIC_BYTES) == 0;
}

static bool read_counts(struct cursor *c, uint64_t *n_tensors, uint64_t *n_keys) {
    uint32_t version;
    c->at += MAGIC_BYTES;
    c->left -= MAGIC_BYTES;
    if (!take32(c, "the version", &version)) {
        return false;
    }
    if (version == 0x02000000 || version == 0x03000000) {
        return st_fail(c->error, "%s: a big-endian GGUF file; only little-endian ones are read", c->file->path);
    }
    if (version != 2 && version != 3) {
        return st_fail(c->error, "%s: GGUF version %" PRIu32 ", expected 2 or 3", c->file->path, version);
    }
    return take(c, 8, "the number of tensors", n_tensors) && take(c, 8, "the number of keys", n_keys);
}

static bool read_all(st_file *file, const unsigned char *bytes, size_t n_bytes, st_error *error) {
    struct cursor c = { .at = bytes, .left = n_bytes, .file = file, .error = error };
    uint64_t n_tensors, n_keys, alignment = DEFAULT_ALIGNMENT, *offsets = NULL;
    size_t capacity = 0;
    bool ok = false;
    char *name = malloc(MAX_NAME_BYTES + 1);
    json_t *metadata = json_object(), *names = json_object(), *types = json_object();
    file->is_gguf = true;
    file->header = json_pack("{s:o?, s:o?, s:o?}", "metadata", metadata, "names", names, "types", types);       /* takes them */
    if (!name || !file->header || !metadata || !names || !types) {
        st_fail(error, "%s: out of memory", file->path);
        goto done;
    }
    if (!gguf_recognise(bytes, n_bytes)) {
        st_fail(error, "%s: not a GGUF file", file->path);
        goto done;
    }
    if (!read_counts(&c, &n_tensors, &n_keys) || !read_metadata(&c, metadata, n_keys, name) || !find_alignment(&c, metadata, &alignment)) {
        goto done;
    }
    for (uint64_t i = 0; i < n_tensors; i++) {
        if (!read_tensor(&c, file, &capacity, &offsets, names, types, name)) {
            goto done;
        }
    }
    ok = place(&c, file, offsets, alignment, bytes) && check_apart(&c, file);
done:
    free(offsets);
    free(name);
    return ok;
}

bool gguf_read(st_file *file, st_error *error) {
    return read_all(file, file->mapping, file->n_bytes, error);
}

bool gguf_parse(const char *path, const void *bytes, size_t n_bytes, st_file **out, st_error *error) {
    st_file *file = st_file_new(path, error);
    if (!file) {
        return false;
    }
    if (!read_all(file, bytes, n_bytes, error)) {
        st_close(file);
        return false;
    }
    *out = file;
    return true;
}

static const json_t *metadata_value(const st_file *file, const char *key) {
    return file->is_gguf ? json_object_get(json_object_get(file->header, "metadata"), key) : NULL;
}

const char *gguf_string(const st_file *file, const char *key) {
    return json_string_value(metadata_value(file, key));
}

bool gguf_number(const st_file *file, const char *key, int64_t *number) {
    const json_t *value = metadata_value(file, key);
    if (!json_is_integer(value)) {
        return false;
    }
    *number = json_integer_value(value);
    return true;
}
