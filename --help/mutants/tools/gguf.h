/* Reading GGUF files (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), versions 2 and 3: "GGUF", counts, metadata by key,
 * a name, shape, type and offset for each tensor, then the data. What is read is an st_file, as of a safetensors file, so that
 * whoever takes tensors need not know where they come from; shapes are turned around, since GGUF lists the fastest extent first.
 *
 * The file may come from anyone: every length is held against the bytes that are left before it is used, offsets and sizes are computed
 * with overflow checks, ranges must lie in the data, on the file's alignment, and may not overlap; names and keys may not repeat, be empty, or
 * be anything but UTF-8 without a zero byte. Arrays are walked, not kept.
 *
 * Types. Files hold quantised tensors as a rule; they open, and so do types this version has never heard of. Only asking for a view of such
 * a tensor is an error, which names the type. */
#ifndef ONELAUNCH_TOOLS_GGUF_H
#define ONELAUNCH_TOOLS_GGUF_H

#include "safetensors.h"

/* Whether the bytes start as a GGUF file does, of whatever version. */
bool gguf_recognise(const void *bytes, size_t n_bytes);
/* Reads a file that st_map has mapped. After a failure it is still to be closed, by st_close as any. */
bool gguf_read(st_file *file, st_error *error);
/* The same of n_bytes of memory, which are borrowed until st_close. */
bool gguf_parse(const char *path, const void *bytes, size_t n_bytes, st_file **file, st_error *error);

/* Metadata. NULL, or false, where the file is no GGUF file, or has no such key, or with a value of another kind. The string belongs to the file. */
const char *gguf_string(const st_file *file, const char *key);
bool gguf_number(const st_file *file, const char *key, int64_t *number);

#endif
