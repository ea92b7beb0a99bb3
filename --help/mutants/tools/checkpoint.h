/* A checkpoint: one safetensors or GGUF file, told by its first bytes, a sharded set of safetensors with its index
 * (model.safetensors.index.json), or a folder with one of these.
 * Shards are opened when a tensor in them is first asked for, so the ones that hold nothing of interest are never touched. */
#ifndef ONELAUNCH_TOOLS_CHECKPOINT_H
#define ONELAUNCH_TOOLS_CHECKPOINT_H

#include "safetensors.h"

typedef struct checkpoint checkpoint;

/* A tensor and the file it is in; both belong to the checkpoint. */
typedef struct checkpoint_tensor {
    const st_file *file;
    const st_tensor *tensor;
} checkpoint_tensor;

bool checkpoint_open(const char *path, checkpoint **out, st_error *error);
void checkpoint_close(checkpoint *set);                          /* NULL is allowed */

/* What messages call it when no single file is meant: the file or the index. */
const char *checkpoint_path(const checkpoint *set);
size_t checkpoint_count(const checkpoint *set);
/* Names in bytewise order. */
const char *checkpoint_name(const checkpoint *set, size_t index);
bool checkpoint_has(const checkpoint *set, const char *name);

/* Finds a tensor, opening its shard if need be. An error where the name is unknown or the shard lacks it. */
bool checkpoint_find(checkpoint *set, const char *name, checkpoint_tensor *found, st_error *error);
/* Whether the file of this device and inode belongs to the checkpoint: its index, or a shard, opened so far or not. */
bool checkpoint_holds_file(const checkpoint *set, uint64_t device, uint64_t inode);

#endif
