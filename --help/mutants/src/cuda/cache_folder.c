/* See cache_folder.h. */
#include "cuda/cache_folder.h"

#include "sort.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Where it is ---- */

int cache_folder_path(cache_path *path)
{
    const char *own = secure_getenv("ONELAUNCH_CACHE"), *caches = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    if (own && *own)
        *path = (cache_path){ own, "" };
    else if (caches && *caches == '/')           /* the XDG specification: others are to be ignored */
        *path = (cache_path){ caches, "/onelaunch" };
    else
        *path = (cache_path){ home ? home : "", "/.cache/onelaunch" };
    return *path->start == '/';                  /* also what makes "off" so */
}

uint64_t cache_folder_bound(void)
{
    enum { USUAL = 256 };
    const char *text = secure_getenv("ONELAUNCH_CACHE_MIB");
    uint64_t number = 0;
    if (!text || !*text)
        return (uint64_t)USUAL << 20;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || number > (UINT64_MAX >> 20) / 16)
            return (uint64_t)USUAL << 20;
        number = number * 10 + (uint64_t)(*text - '0');
    }
    return number << 20;
}

/* ---- Opening it ---- */

/* Makes what is missing of a path, as a user would: in folders that are his or the system's. Root, with another user's HOME,
 * would else leave folders there that this user cannot use. The path is taken apart. */
static int make_folders(char *path)
{
    int folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (char *rest = path, *name; folder >= 0 && (name = strtok_r(rest, "/", &rest));) {
        int next = openat(folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct stat s;
        if (next < 0 && errno == ENOENT && fstat(folder, &s) == 0 && (s.st_uid == geteuid() || s.st_uid == 0)) {
            if (mkdirat(folder, name, 0700) == 0 || errno == EEXIST)
                next = openat(folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        }
        int code = errno;
        close(folder);
        errno = code;
        folder = next;
    }
    if (folder < 0)
        return -1;
    int opened = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = errno;
    close(folder);
    errno = code;
    return opened;
}

int cache_folder_open(int create)
{
    cache_path parts;
    char path[PATH_MAX];
    struct stat s;
    if (!cache_folder_path(&parts)) {
        errno = ENOENT;
        return -1;
    }
    if (snprintf(path, sizeof path, "%s%s", parts.start, parts.end) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    /* A link to a folder is followed: it may well lie on another disk. It is the folder that must be safe. */
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 && errno == ENOENT && create)
        folder = make_folders(path);
    if (folder >= 0 && (fstat(folder, &s) != 0 || s.st_uid != geteuid() || s.st_mode & (S_IWGRP | S_IWOTH))) {
        close(folder);
        errno = EPERM;
        return -1;
    }
    return folder;
}

/* ---- Its files ---- */

static int is_digits(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
            return 0;
    return 1;
}

static int is_ours(const char *name, int *is_temporary)
{
    if (!is_digits(name, 32))                    /* stops at the end of a shorter one */
        return 0;
    *is_temporary = name[32] == '.' && is_digits(name + 33, 16) && strcmp(name + 49, ".temp") == 0;
    return *is_temporary || strcmp(name + 32, ".kernel") == 0;
}

static int add_file(int folder, const char *name, cache_files *files)
{
    struct stat s;
    int is_temporary;
    if (!is_ours(name, &is_temporary) || fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) != 0 || files->n == UINT32_MAX)
        return 0;                                /* not ours, or gone by now */
    if (!memory_grow(&files->allocator, (void **)&files->items, &files->capacity, (size_t)files->n + 1, sizeof *files->items))
        return ENOMEM;
    cache_file *file = &files->items[files->n++];
    *file = (cache_file){ .is_temporary = is_temporary, .is_plain = S_ISREG(s.st_mode), .seconds = s.st_mtim.tv_sec,
                          .nanoseconds = s.st_mtim.tv_nsec, .n_bytes = (uint64_t)s.st_size };
    memcpy(file->name, name, strlen(name) + 1);  /* our names fit */
    return 0;
}

/* By time; by name where that is equal, so that the order does not depend on the folder's. */
static int compare_use(const void *context, uint32_t a, uint32_t b)
{
    const cache_file *items = context, *x = &items[a], *y = &items[b];
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    if (x->nanoseconds != y->nanoseconds)
        return x->nanoseconds < y->nanoseconds ? -1 : 1;
    return strcmp(x->name, y->name);
}

int cache_files_find(int folder, cache_files *files)
{
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = again < 0 ? NULL : fdopendir(again);
    int code = 0;
    if (!stream) {
        code = errno;
        if (again >= 0)
            close(again);
        return code;
    }
    while (code == 0) {
        errno = 0;
        const struct dirent *found = readdir(stream);
        if (!found) {
            code = errno;
            break;
        }
        code = add_file(folder, found->d_name, files);
    }
    closedir(stream);
    if (code == 0 && !(files->order = memory_take(&files->allocator, files->n * sizeof *files->order)))
        code = ENOMEM;
    if (code == 0)
        sort_indices(files->order, files->n, compare_use, files->items);
    return code;
}

void cache_files_free(cache_files *files)
{
    memory_give(&files->allocator, files->order, files->n * sizeof *files->order);
    memory_give(&files->allocator, files->items, files->capacity * sizeof *files->items);
    *files = (cache_files){ .allocator = files->allocator };
}
