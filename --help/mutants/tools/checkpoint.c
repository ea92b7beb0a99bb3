/* See checkpoint.h.
 *
 * An index names its shards, and it may come from anyone: a name must be relative, without "..", and what it leads to after
 * following symbolic links must lie in the index's folder. A cache of downloads keeps a folder of links into a folder of files;
 * there the index is a link too, so the folder in which the index itself really lies is allowed as well. */
#include "checkpoint.h"

#include "gguf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX_SUFFIX ".safetensors.index.json"
#define FILE_SUFFIX ".safetensors"
#define GGUF_SUFFIX ".gguf"
enum { MAX_INDEX_BYTES = 256 * 1024 * 1024 };

struct shard {
    const char *name;                  /* as the index has it */
    st_file *file;                     /* NULL until it is needed */
};

struct name {
    const char *tensor;
    size_t shard;
};

struct checkpoint {
    char *path;
    struct stat index_status;          /* which file the index is; zero for a single file */
    char *folder, *real_folder;        /* where shards may lie; resolved. NULL for a single file */
    json_t *index;                     /* owns the strings of a sharded set */
    struct name *names;                /* sorted by tensor */
    size_t n_names;
    struct shard *shards;              /* sorted by name */
    size_t n_shards;
};

static bool ends_with(const char *text, const char *suffix) {
    size_t length = strlen(text), n = strlen(suffix);
    return length >= n && strcmp(text + length - n, suffix) == 0;
}

static int by_tensor(const void *left, const void *right) {
    return strcmp(((const struct name *)left)->tensor, ((const struct name *)right)->tensor);
}

static int by_shard(const void *left, const void *right) {
    return strcmp(((const struct shard *)left)->name, ((const struct shard *)right)->name);
}

/* ---- One file -------------------------------------------------------------------------------------------------- */

static bool open_single(checkpoint *set, st_error *error) {
    set->shards = calloc(1, sizeof *set->shards);
    if (!set->shards) {
        return st_fail(error, "%s: out of memory", set->path);
    }
    set->n_shards = 1;
    set->shards[0].name = set->path;
    st_file **file = &set->shards[0].file;
    if (!st_map(set->path, file, error) || !(gguf_recognise((*file)->mapping, (*file)->n_bytes) ? gguf_read(*file, error) : st_read(*file, error))) {
        return false;
    }
    set->n_names = set->shards[0].file->n_tensors;
    set->names = calloc(set->n_names + 1, sizeof *set->names);
    if (!set->names) {
        return st_fail(error, "%s: out of memory", set->path);
    }
    for (size_t i = 0; i < set->n_names; i++) {
        set->names[i].tensor = set->shards[0].file->tensors[i].name;
    }
    return true;
}

/* ---- An index and its shards ----------------------------------------------------------------------------------- */

static bool read_index_text(const char *path, char **text, size_t *n_bytes, struct stat *which, st_error *error) {
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *text = NULL;
    if (descriptor < 0 || fstat(descriptor, &status) != 0) {
        st_fail(error, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        st_fail(error, "%s: not a file", path);
    } else if (status.st_size > MAX_INDEX_BYTES) {
        st_fail(error, "%s: an index of %lld bytes is over the limit of %d", path, (long long)status.st_size, MAX_INDEX_BYTES);
    } else if (!(*text = malloc((size_t)status.st_size + 1))) {
        st_fail(error, "%s: out of memory", path);
    } else {
        ssize_t got = 1;
        for (*n_bytes = 0; *n_bytes < (size_t)status.st_size && got > 0; *n_bytes += got > 0 ? (size_t)got : 0) {
            got = read(descriptor, *text + *n_bytes, (size_t)status.st_size - *n_bytes);
        }
        if (got < 0) {
            st_fail(error, "%s: %s", path, strerror(errno));
            free(*text);
            *text = NULL;
        }
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    if (*text) {
        *which = status;
    }
    return *text != NULL;
}

/* Relative, and no component is "..". */
static bool stays_inside(const char *name) {
    for (const char *part = name;;) {
        const char *slash = strchrnul(part, '/');
        if (slash - part == 2 && memcmp(part, "..", 2) == 0) {
            return false;
        }
        if (!*slash) {
            return *name && *name != '/';
        }
        part = slash + 1;
    }
}

static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return !slash ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static bool find_folders(checkpoint *set, st_error *error) {
    char *named = folder_of(set->path), *real = realpath(set->path, NULL);
    set->folder = named ? realpath(named, NULL) : NULL;
    set->real_folder = real ? folder_of(real) : NULL;
    free(named);
    free(real);
    return (set->folder && set->real_folder) || st_fail(error, "%s: its folder: %s", set->path, strerror(errno));
}

/* Fills names and shards from the index's "weight_map": tensor to shard. */
static bool read_weight_map(checkpoint *set, json_t *map, st_error *error) {
    const char *tensor;
    json_t *value;
    size_t n = json_object_size(map), unique = 0;
    set->names = calloc(n + 1, sizeof *set->names);
    set->shards = calloc(n + 1, sizeof *set->shards);
    if (!set->names || !set->shards) {
        return st_fail(error, "%s: out of memory for %zu tensors", set->path, n);
    }
    json_object_foreach (map, tensor, value) {
        const char *shard = json_string_value(value);
        if (!shard) {
            return st_fail(error, "%s: tensor %.300s: its shard's name is not a string", set->path, tensor);
        }
        if (!stays_inside(shard)) {
            return st_fail(error, "%s: tensor %.300s: its shard \"%.300s\" lies outside the index's folder", set->path, tensor,
                           shard);
        }
        set->names[set->n_names++].tensor = tensor;
        set->shards[set->n_shards++].name = shard;
    }
    qsort(set->names, set->n_names, sizeof *set->names, by_tensor);
    qsort(set->shards, set->n_shards, sizeof *set->shards, by_shard);
    for (size_t i = 0; i < set->n_shards; i++) {
        if (i == 0 || strcmp(set->shards[i].name, set->shards[unique - 1].name) != 0) {
            set->shards[unique++] = set->shards[i];
        }
    }
    set->n_shards = unique;
    for (size_t i = 0; i < set->n_names; i++) {
        const struct shard key = { .name = json_string_value(json_object_get(map, set->names[i].tensor)) };
        const struct shard *shard = bsearch(&key, set->shards, set->n_shards, sizeof key, by_shard);
        set->names[i].shard = (size_t)(shard - set->shards);
    }
    return true;
}

static bool open_index(checkpoint *set, st_error *error) {
    char *text;
    size_t n_bytes;
    json_error_t reason;
    if (!read_index_text(set->path, &text, &n_bytes, &set->index_status, error)) {
        return false;
    }
    set->index = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &reason);
    free(text);
    if (!set->index) {
        return st_fail(error, "%s: not valid JSON: %s (line %d)", set->path, reason.text, reason.line);
    }
    json_t *map = json_object_get(set->index, "weight_map");
    if (!json_is_object(map)) {
        return st_fail(error, "%s: not an index of shards: \"weight_map\" is not an object", set->path);
    }
    return find_folders(set, error) && read_weight_map(set, map, error);
}

static bool lies_in(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return strcmp(folder, "/") == 0 || (strncmp(path, folder, length) == 0 && path[length] == '/');
}

static bool open_shard(checkpoint *set, struct shard *shard, st_error *error) {
    bool opened = false;
    char *folder = folder_of(set->path), *path = NULL, *real = NULL;
    if (!folder || asprintf(&path, "%s/%s", folder, shard->name) < 0) {
        path = NULL;
        st_fail(error, "%s: out of memory", set->path);
    } else if (!(real = realpath(path, NULL))) {
        st_fail(error, "%s: %s (a shard that %s names)", path, strerror(errno), set->path);
    } else if (!lies_in(real, set->folder) && !lies_in(real, set->real_folder)) {
        st_fail(error, "%s: a link to %s, outside the folder of %s", path, real, set->path);
    } else {
        opened = st_open(path, &shard->file, error);
    }
    free(real);
    free(path);
    free(folder);
    return opened;
}

/* ---- A folder -------------------------------------------------------------------------------------------------- */

/* The only file in the folder with this suffix; *count says how many there are. NULL where there is not exactly one. */
static char *only_file(const char *folder, const char *suffix, size_t *count) {
    char *found = NULL;
    DIR *stream = opendir(folder);
    *count = 0;
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        if (entry->d_name[0] != '.' && ends_with(entry->d_name, suffix) && ++*count == 1 &&
            asprintf(&found, "%s/%s", folder, entry->d_name) < 0) {
            found = NULL;
        }
    }
    if (stream) {
        closedir(stream);
    }
    if (*count != 1) {
        free(found);
        return NULL;
    }
    return found;
}

/* In a folder: the usual names first, else the only index, else the only file. */
static char *find_in_folder(const char *folder, st_error *error) {
    static const char *const usual[] = { "model" INDEX_SUFFIX, "model" FILE_SUFFIX };
    size_t n_indices, n_files, n_gguf;
    char *path = NULL;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        if (asprintf(&path, "%s/%s", folder, usual[i]) < 0) {
            st_fail(error, "%s: out of memory", folder);
            return NULL;
        }
        if (access(path, F_OK) == 0) {
            return path;
        }
        free(path);
    }
    if ((path = only_file(folder, INDEX_SUFFIX, &n_indices)) ||
        (n_indices == 0 && (path = only_file(folder, FILE_SUFFIX, &n_files))) ||
        (n_indices == 0 && n_files == 0 && (path = only_file(folder, GGUF_SUFFIX, &n_gguf)))) {
        return path;
    }
    if (n_indices > 0) {
        st_fail(error, "%s: a directory with %zu index files; name one", folder, n_indices);
    } else if (n_files == 0 && n_gguf > 0) {
        st_fail(error, "%s: a directory with %zu GGUF files; name one", folder, n_gguf);
    } else {
        st_fail(error, "%s: a directory with %zu safetensors files and no model" INDEX_SUFFIX "; name one", folder, n_files);
    }
    return NULL;
}

bool checkpoint_open(const char *path, checkpoint **out, st_error *error) {
    struct stat status;
    checkpoint *set = calloc(1, sizeof *set);
    if (!set) {
        return st_fail(error, "%s: out of memory", path);
    }
    if (stat(path, &status) != 0) {
        st_fail(error, "%s: %s", path, strerror(errno));
        goto fail;
    }
    if (S_ISDIR(status.st_mode)) {
        set->path = find_in_folder(path, error);
    } else if (!(set->path = strdup(path))) {
        st_fail(error, "%s: out of memory", path);
    }
    if (!set->path || !(ends_with(set->path, ".json") ? open_index(set, error) : open_single(set, error))) {
        goto fail;
    }
    *out = set;
    return true;
fail:
    checkpoint_close(set);
    return false;
}

void checkpoint_close(checkpoint *set) {
    if (!set) {
        return;
    }
    for (size_t i = 0; i < set->n_shards; i++) {
        st_close(set->shards[i].file);
    }
    free(set->shards);
    free(set->names);
    json_decref(set->index);
    free(set->real_folder);
    free(set->folder);
    free(set->path);
    free(set);
}

const char *checkpoint_path(const checkpoint *set) {
    return set->path;
}

size_t checkpoint_count(const checkpoint *set) {
    return set->n_names;
}

const char *checkpoint_name(const checkpoint *set, size_t index) {
    return set->names[index].tensor;
}

static const struct name *find_name(const checkpoint *set, const char *name) {
    const struct name key = { .tensor = name };
    return set->n_names ? bsearch(&key, set->names, set->n_names, sizeof key, by_tensor) : NULL;
}

bool checkpoint_has(const checkpoint *set, const char *name) {
    return find_name(set, name) != NULL;
}

bool checkpoint_find(checkpoint *set, const char *name, checkpoint_tensor *found, st_error *error) {
    const struct name *entry = find_name(set, name);
    if (!entry) {
        return st_fail(error, "%s: tensor %.300s: not in this file", set->path, name);
    }
    struct shard *shard = &set->shards[entry->shard];
    if (!shard->file && !open_shard(set, shard, error)) {
        return false;
    }
    const st_tensor *tensor = st_find(shard->file, name);
    if (!tensor) {
        return st_fail(error, "%s: tensor %.300s: not in this shard, though %s says so", shard->file->path, name, set->path);
    }
    *found = (checkpoint_tensor){ .file = shard->file, .tensor = tensor };
    return true;
}

/* Shards that were never opened are looked up by name; one that is not there cannot be the file. Where memory runs out the
 * answer is true: the caller wants to know what it may overwrite. */
bool checkpoint_holds_file(const checkpoint *set, uint64_t device, uint64_t inode) {
    if (set->index && set->index_status.st_dev == device && set->index_status.st_ino == inode) {
        return true;
    }
    char *folder = folder_of(set->path);
    bool holds = !folder;
    for (size_t i = 0; !holds && i < set->n_shards; i++) {
        const st_file *file = set->shards[i].file;
        struct stat status;
        char *path = NULL;
        if (file) {
            holds = file->device == device && file->inode == inode;
        } else if (asprintf(&path, "%s/%s", folder, set->shards[i].name) < 0) {
            holds = true;
        } else {
            holds = stat(path, &status) == 0 && status.st_dev == device && status.st_ino == inode;
            free(path);
        }
    }
    free(folder);
    return holds;
}
