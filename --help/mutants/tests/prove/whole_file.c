/* See whole_file.h. */
#include "whole_file.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct whole_file {
    char *path;                          /* what is written or replaced, links followed */
    char *temporary;                     /* NULL where it is written in place */
    int descriptor;
} whole_file;

/* The file's own path: behind links, where it is there. */
static char *resolve(const char *path) {
    char *resolved = realpath(path, NULL);
    return resolved || errno != ENOENT ? resolved : strdup(path);
}

/* Names are numbered, since mkstemp would not obey the umask. */
static bool open_temporary(whole_file *f, mode_t mode) {
    for (int attempt = 0; attempt < 1000; attempt++) {
        if (asprintf(&f->temporary, "%s.%ld-%d.tmp", f->path, (long)getpid(), attempt) < 0) {
            f->temporary = NULL;
            errno = ENOMEM;
            return false;
        }
        f->descriptor = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (f->descriptor >= 0) {
            return true;
        }
        int reason = errno;
        free(f->temporary);
        f->temporary = NULL;
        errno = reason;
        if (reason != EEXIST) {
            return false;
        }
    }
    return false;
}

/* False with errno set, as the next two. whole_file_end is to be called in any case. */
static bool whole_file_begin(whole_file *f, const char *path) {
    struct stat about;
    *f = (whole_file){ .path = resolve(path), .descriptor = -1 };
    if (!f->path) {
        return false;
    }
    bool exists = stat(f->path, &about) == 0;
    if (exists && !S_ISREG(about.st_mode)) {
        f->descriptor = open(f->path, O_WRONLY | O_CLOEXEC);
        return f->descriptor >= 0;
    }
    if (exists && access(f->path, W_OK) != 0) {              /* renaming would replace what was made read-only */
        return false;
    }
    return open_temporary(f, 0666) && (!exists || fchmod(f->descriptor, about.st_mode & 07777) == 0);
}

static bool put_all(int descriptor, const void *data, size_t n_bytes) {
    for (const char *next = data; n_bytes > 0;) {
        ssize_t written = write(descriptor, next, n_bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            errno = written < 0 ? errno : ENOSPC;
            return false;
        }
        next += written;
        n_bytes -= (size_t)written;
    }
    return true;
}

static bool whole_file_commit(whole_file *f) {
    if (!f->temporary) {
        return true;
    }
    if (fsync(f->descriptor) != 0 || rename(f->temporary, f->path) != 0) {
        return false;
    }
    free(f->temporary);
    f->temporary = NULL;
    return true;
}

static void whole_file_end(whole_file *f) {
    if (f->descriptor >= 0) {
        close(f->descriptor);
    }
    if (f->temporary) {
        unlink(f->temporary);
    }
    free(f->temporary);
    free(f->path);
}

static bool finish(whole_file *f, const char *command, const char *path, bool done) {
    int reason = errno;
    whole_file_end(f);
    if (!done) {
        cli_error(command, "%s: %s", path, strerror(reason));
    }
    return done;
}

bool whole_file_write(const char *command, const char *path, const void *data, size_t n_bytes) {
    whole_file f;
    bool done = whole_file_begin(&f, path) && put_all(f.descriptor, data, n_bytes) && whole_file_commit(&f);
    return finish(&f, command, path, done);
}

bool whole_file_writable(const char *command, const char *path) {
    whole_file f;
    bool done = whole_file_begin(&f, path);
    return finish(&f, command, path, done);
}
