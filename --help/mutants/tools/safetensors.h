/* Reading and writing safetensors files: eight bytes with the header's length (little-endian), a JSON object that gives
 * each tensor's dtype, shape and range of bytes, then the data. https://github.com/huggingface/safetensors#format
 *
 * Reading maps the file and copies no data, so a checkpoint of 60 GB costs the pages that are looked at. Everything in the
 * header is checked before a tensor is handed out: it may come from anyone. The data may lie at any alignment.
 * What cannot be checked: a file that another process truncates while it is mapped ends this one with SIGBUS. The size is
 * taken once, when the file is opened.
 *
 * Dtypes. Real checkpoints hold tensors that nothing here computes with (F64, F8_E4M3 …), so a file with such tensors opens,
 * and so does one with a dtype this version has never heard of or a rank above OL_MAX_RANK; only asking for a view of that
 * very tensor is an error (st_view). A known dtype's length is always checked against the shape. */
#ifndef ONELAUNCH_TOOLS_SAFETENSORS_H
#define ONELAUNCH_TOOLS_SAFETENSORS_H

#include <onelaunch.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "FILE: tensor NAME: what is wrong". Written by a failing call only. */
typedef struct st_error {
    char text[2048];
} st_error;
/* Writes the message; always false, so that a check can return it. */
bool st_fail(st_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct st_tensor {
    const char *name;                  /* strings and data belong to the file */
    const char *dtype_name;            /* as the header spells it: "BF16" */
    int32_t element_bits;              /* 0 where the dtype is not known, or stored in blocks */
    const char *unusable;              /* why there is no view, to follow the dtype's name; NULL: the dtype decides */
    int32_t rank;                      /* may be above OL_MAX_RANK: shape then holds the first ones */
    int64_t shape[OL_MAX_RANK];
    int64_t n_elements;
    const unsigned char *data;
    uint64_t n_bytes;
} st_tensor;

typedef struct st_file {
    char *path;                        /* as it was given, for messages */
    st_tensor *tensors;                /* sorted by name, bytewise */
    size_t n_tensors;
    void *header;                      /* the parsed JSON, which owns the strings; of a GGUF file, what gguf.c makes of its header */
    bool is_gguf;
    void *mapping;                     /* NULL for st_parse */
    size_t n_bytes;
    uint64_t device, inode;            /* which file it is; zero for st_parse */
} st_file;

/* Opens and maps a file. False and *error set on failure. Close it with st_close. */
bool st_open(const char *path, st_file **file, st_error *error);
/* The same for n_bytes of memory, which are borrowed until st_close. `path` is what messages call it. */
bool st_parse(const char *path, const void *bytes, size_t n_bytes, st_file **file, st_error *error);
void st_close(st_file *file);          /* NULL is allowed */
/* The two halves of st_open, between which another format may be recognised: a file, mapped, without tensors; and what is in it. After
 * a failure of st_read the file is still to be closed. */
bool st_map(const char *path, st_file **file, st_error *error);
bool st_read(st_file *file, st_error *error);
/* A file without bytes, for readers; NULL, with a message, where memory ran out. */
st_file *st_file_new(const char *path, st_error *error);

/* NULL where no tensor has that name. */
const st_tensor *st_find(const st_file *file, const char *name);
/* A row-major view of a tensor's data, for reading only. An error where the library has no such dtype or rank. */
bool st_view(const st_file *file, const st_tensor *tensor, ol_tensor *view, st_error *error);

/* "BF16" for OL_BFLOAT16: the format's name of a dtype. Static storage. */
const char *st_dtype_name(ol_dtype dtype);

/* ---- Writing (safetensors_write.c) --------------------------------------------------------------------------------------
 *
 * The file is written under no name, or a temporary one in the same folder, and takes its own name when it is complete and on
 * the disk: a reader never sees half of it, and after a failure what stood there before still stands there. Only a regular
 * file is ever replaced, and its permission bits are kept. */

typedef struct st_entry {
    const char *name;
    ol_tensor tensor;                  /* dtype and shape count, not data */
} st_entry;

typedef struct st_writer st_writer;

/* Reserves room for these tensors. The entries are not kept. */
bool st_writer_begin(const char *path, const st_entry *entries, size_t n_entries, const char *producer, st_writer **writer,
                     st_error *error);
/* The data of entries[index], contiguous. In any order, each once. */
bool st_writer_put(st_writer *writer, size_t index, const void *data, st_error *error);
/* Gives the file its name. The writer is gone after it, also on failure. */
bool st_writer_commit(st_writer *writer, st_error *error);
/* Drops everything. NULL is allowed. */
void st_writer_abort(st_writer *writer);

#endif
