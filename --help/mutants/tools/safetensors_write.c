/* Writing safetensors files. See safetensors.h for what is promised.
 *
 * Where the file system can (O_TMPFILE), the file has no name until it is complete, so even a killed process leaves nothing
 * behind. Elsewhere it has a temporary name, and the signals that ask a process to end are held back while it has, looked
 * for between tensors, and let through once the name is gone: no handler, no global state. Room for the whole file is
 * reserved first, so that a full disk is found before anything is computed. */
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    uint64_t begin, n_bytes;
    bool written;
};

struct st_writer {
    char *path;                        /* with symbolic links followed */
    mode_t mode;                       /* permission bits of the file that will be replaced */
    bool replaces;
    char *temporary;                   /* NULL while the file has no name */
    int descriptor;
    bool holding;                      /* signals are held back, and `signals` is the mask to restore */
    sigset_t signals;
    struct place *places;
    size_t n_places;
};

/* The signals a user or a shutting-down machine ends a process with. */
static void ending_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
}

static void hold_signals(st_writer *writer) {
    sigset_t ending;
    ending_signals(&ending);
    if (!writer->holding) {
        writer->holding = sigprocmask(SIG_BLOCK, &ending, &writer->signals) == 0;
    }
}

static void release_signals(st_writer *writer) {
    if (writer->holding) {
        writer->holding = false;
        sigprocmask(SIG_SETMASK, &writer->signals, NULL);
    }
}

static bool interrupted(const st_writer *writer) {
    sigset_t pending;
    return writer->holding && sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) || sigismember(&pending, SIGHUP));
}

/* Length of the folder's part of a path, 0 for the current folder. */
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

#define FD_PATH_BYTES 40
static const char *descriptor_path(int descriptor, char buffer[FD_PATH_BYTES]) {
    snprintf(buffer, FD_PATH_BYTES, "/proc/self/fd/%d", descriptor);
    return buffer;
}

/* Gives the file a free temporary name beside its own: creates it so, or links the file that is open. Names are numbered
 * here, since mkstemp would not obey the umask. False with errno set on failure. */
static bool take_temporary_name(st_writer *writer) {
    size_t folder = folder_length(writer->path);
    char fd_path[FD_PATH_BYTES];
    hold_signals(writer);
    for (int attempt = 0; attempt < 1000; attempt++) {
        char *name = NULL;
        if (asprintf(&name, "%.*s.%.200s.%ld-%d.tmp", (int)folder, writer->path, writer->path + folder, (long)getpid(), attempt) <
            0) {
            errno = ENOMEM;
            return false;
        }
        if (writer->descriptor < 0) {
            writer->descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            writer->temporary = writer->descriptor >= 0 ? name : NULL;
        } else if (linkat(AT_FDCWD, descriptor_path(writer->descriptor, fd_path), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
            writer->temporary = name;
        }
        if (writer->temporary) {
            return true;
        }
        int reason = errno;
        free(name);
        errno = reason;
        if (reason != EEXIST) {
            return false;
        }
    }
    return false;
}

static bool open_temporary(st_writer *writer, st_error *error) {
    size_t folder = folder_length(writer->path);
    char fd_path[FD_PATH_BYTES];
    char *name = folder ? strndup(writer->path, folder) : strdup(".");
    if (!name) {
        return st_fail(error, "%s: out of memory", writer->path);
    }
    writer->descriptor = open(name, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    free(name);
    if (writer->descriptor >= 0 && access(descriptor_path(writer->descriptor, fd_path), F_OK) == 0) {
        return true;
    }
    if (writer->descriptor >= 0) {
        close(writer->descriptor);
        writer->descriptor = -1;
    }
    return take_temporary_name(writer) || st_fail(error, "%s: cannot be created: %s", writer->path, strerror(errno));
}

/* Writes all of it at a place in the file. */
static bool write_at(const st_writer *writer, const void *data, uint64_t n_bytes, uint64_t offset, st_error *error) {
    const unsigned char *next = data;
    while (n_bytes > 0) {
        size_t part = n_bytes < 1u << 30 ? (size_t)n_bytes : 1u << 30;
        ssize_t written = pwrite(writer->descriptor, next, part, (off_t)offset);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return st_fail(error, "%s: cannot be written: %s", writer->path, written < 0 ? strerror(errno) : "nothing was taken");
        }
        next += written;
        n_bytes -= (uint64_t)written;
        offset += (uint64_t)written;
    }
    return true;
}

static bool element_count(const ol_tensor *tensor, uint64_t *count) {
    *count = 1;
    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        if (tensor->shape[axis] < 0 || __builtin_mul_overflow(*count, (uint64_t)tensor->shape[axis], count)) {
            return false;
        }
    }
    return true;
}

/* Ranges for all entries, wide dtypes first: each tensor is then aligned to its elements. */
static bool lay_out(st_writer *writer, const st_entry *entries, uint64_t *data_bytes, st_error *error) {
    *data_bytes = 0;
    for (size_t size = 8; size > 0; size /= 2) {
        for (size_t i = 0; i < writer->n_places; i++) {
            struct place *place = &writer->places[i];
            if (ol_dtype_size(entries[i].tensor.dtype) != size) {
                continue;
            }
            place->begin = *data_bytes;
            if (!element_count(&entries[i].tensor, &place->n_bytes) ||
                __builtin_mul_overflow(place->n_bytes, (uint64_t)size, &place->n_bytes) ||
                __builtin_add_overflow(*data_bytes, place->n_bytes, data_bytes) || *data_bytes > INT64_MAX / 2) {
                return st_fail(error, "%s: tensor %.300s: too large to be written", writer->path, entries[i].name);
            }
        }
    }
    return true;
}

static json_t *describe(const ol_tensor *tensor, const struct place *place) {
    json_t *shape = json_array();
    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        if (json_array_append_new(shape, json_integer(tensor->shape[axis])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", st_dtype_name(tensor->dtype), "shape", shape, "data_offsets",
                     (json_int_t)place->begin, (json_int_t)(place->begin + place->n_bytes));
}

/* The header as text; NULL, with a message, on failure. The caller frees it. */
static char *header_text(const st_writer *writer, const st_entry *entries, const char *producer, st_error *error) {
    char *text = NULL;
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "producer", producer);
    for (size_t i = 0; header && i < writer->n_places; i++) {
        if (json_object_get(header, entries[i].name)) {
            st_fail(error, "%s: tensor %.300s: the name is taken", writer->path, entries[i].name);
            goto done;
        }
        if (json_object_set_new(header, entries[i].name, describe(&entries[i].tensor, &writer->places[i])) != 0) {
            break;
        }
    }
    if (header && json_object_size(header) == writer->n_places + 1) {
        text = json_dumps(header, JSON_COMPACT);
    }
    if (!text) {
        st_fail(error, "%s: out of memory for the header", writer->path);
    }
done:
    json_decref(header);
    return text;
}

/* Length, header, spaces up to a multiple of eight; then places count from the start of the file. */
static bool write_header(st_writer *writer, const char *text, uint64_t data_bytes, st_error *error) {
    uint64_t length = strlen(text), padded = (length + 7) / 8 * 8;
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++) {
        prefix[i] = (unsigned char)(padded >> 8 * i);
    }
    int refused = posix_fallocate(writer->descriptor, 0, (off_t)(8 + padded + data_bytes));
    if (refused == ENOSPC || refused == EFBIG || refused == EDQUOT) {          /* others: the file system cannot reserve */
        return st_fail(error, "%s: no room for %" PRIu64 " bytes: %s", writer->path, 8 + padded + data_bytes, strerror(refused));
    }
    for (size_t i = 0; i < writer->n_places; i++) {
        writer->places[i].begin += 8 + padded;
    }
    return write_at(writer, prefix, 8, 0, error) && write_at(writer, text, length, 8, error) &&
           write_at(writer, "       ", padded - length, 8 + length, error);
}

/* The file gets the permissions of the one it replaces before it has any content. */
static bool keep_mode(const st_writer *writer, st_error *error) {
    struct stat status;
    if (writer->replaces && (fstat(writer->descriptor, &status) != 0 ||
                             ((status.st_mode & 0777) != writer->mode && fchmod(writer->descriptor, writer->mode) != 0))) {
        return st_fail(error, "%s: cannot be given the permissions of the file it replaces: %s", writer->path, strerror(errno));
    }
    return true;
}

/* The path to write to: links are followed, and what is there must be a file or nothing. */
static bool resolve(st_writer *writer, const char *path, st_error *error) {
    struct stat status;
    bool exists = lstat(path, &status) == 0;
    writer->path = exists && S_ISLNK(status.st_mode) ? realpath(path, NULL) : strdup(path);
    if (!writer->path) {
        return st_fail(error, "%s: %s", path, strerror(errno));
    }
    writer->replaces = stat(writer->path, &status) == 0;
    writer->mode = writer->replaces ? status.st_mode & 0777 : 0;
    if (writer->replaces && !S_ISREG(status.st_mode)) {
        return st_fail(error, "%s: %s, not a file: nothing was written", path,
                       S_ISDIR(status.st_mode) ? "a directory" : "a device or pipe");
    }
    if (!*path || path[strlen(path) - 1] == '/') {
        return st_fail(error, "%s: not the name of a file", path);
    }
    return true;
}

bool st_writer_begin(const char *path, const st_entry *entries, size_t n_entries, const char *producer, st_writer **out,
                     st_error *error) {
    uint64_t data_bytes;
    char *text = NULL;
    st_writer *writer = calloc(1, sizeof *writer);
    if (!writer) {
        return st_fail(error, "%s: out of memory", path);
    }
    writer->descriptor = -1;
    writer->n_places = n_entries;
    writer->places = calloc(n_entries + 1, sizeof *writer->places);
    if (!writer->places) {
        st_fail(error, "%s: out of memory", path);
        goto fail;
    }
    if (!resolve(writer, path, error) || !lay_out(writer, entries, &data_bytes, error) ||
        !(text = header_text(writer, entries, producer, error)) || !open_temporary(writer, error) ||
        !keep_mode(writer, error) || !write_header(writer, text, data_bytes, error)) {
        goto fail;
    }
    free(text);
    *out = writer;
    return true;
fail:
    free(text);
    st_writer_abort(writer);
    return false;
}

bool st_writer_put(st_writer *writer, size_t index, const void *data, st_error *error) {
    if (interrupted(writer)) {
        return st_fail(error, "%s: interrupted: nothing was written", writer->path);
    }
    if (index >= writer->n_places || writer->places[index].written) {
        return st_fail(error, "%s: tensor number %zu was written twice or was not announced", writer->path, index);
    }
    writer->places[index].written = true;
    return write_at(writer, data, writer->places[index].n_bytes, writer->places[index].begin, error);
}

/* A file without a name gets a temporary one first, since linking cannot replace an older file and renaming can. */
static bool give_name(st_writer *writer, st_error *error) {
    if ((!writer->temporary && !take_temporary_name(writer)) || rename(writer->temporary, writer->path) != 0) {
        return st_fail(error, "%s: cannot be given its name: %s", writer->path, strerror(errno));
    }
    free(writer->temporary);
    writer->temporary = NULL;
    return true;
}

bool st_writer_commit(st_writer *writer, st_error *error) {
    bool done = true;
    for (size_t i = 0; done && i < writer->n_places; i++) {
        done = writer->places[i].written || st_fail(error, "%s: tensor number %zu was never written", writer->path, i);
    }
    if (done && fsync(writer->descriptor) != 0) {
        done = st_fail(error, "%s: cannot be written: %s", writer->path, strerror(errno));
    }
    done = done && give_name(writer, error);
    st_writer_abort(writer);           /* after give_name there is nothing left to drop but memory */
    return done;
}

void st_writer_abort(st_writer *writer) {
    if (!writer) {
        return;
    }
    if (writer->descriptor >= 0) {
        close(writer->descriptor);
    }
    if (writer->temporary) {
        unlink(writer->temporary);
        free(writer->temporary);
    }
    release_signals(writer);
    free(writer->places);
    free(writer->path);
    free(writer);
}
