/* The public view of the cache: its folder, its entries, and emptying it. */
#include "cuda/cache_entry.h"
#include "status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

size_t ol_cache_folder(char *buffer, size_t n_bytes)
{
    cache_path path;
    if (!cache_folder_path(&path))
        path = (cache_path){ "", "" };
    int n = snprintf(buffer, n_bytes, "%s%s", path.start, path.end);
    return n < 0 ? 0 : (size_t)n;
}

static ol_status folder_fail(int code, const char *operation, ol_error *error)
{
    char path[256];
    ol_cache_folder(path, sizeof path);
    if (code == ENOMEM)
        return fail(error, OL_ERROR_MEMORY, operation, "no memory for the list of files in %s", path);
    if (code == EPERM)
        return fail(error, OL_ERROR_DEVICE, operation, "%s is not used: it must belong to the user and be writable by no one else",
                    path);
    return fail(error, OL_ERROR_DEVICE, operation, "%s cannot be read: %s", path, strerrordesc_np(code));
}

/* The folder and its files; -1 and OL_OK where there is no folder. */
static ol_status find(int *folder, cache_files *files, const char *operation, ol_error *error)
{
    *files = (cache_files){ .allocator = memory_allocator(NULL) };
    *folder = cache_folder_open(0);
    if (*folder < 0)
        return errno == ENOENT ? OL_OK : folder_fail(errno, operation, error);
    int code = cache_files_find(*folder, files);
    if (code == 0)
        return OL_OK;
    cache_files_free(files);
    close(*folder);
    return folder_fail(code, operation, error);
}

/* ---- Listing ---- */

enum { LABEL_BYTES = 128 };
typedef struct labels {
    char kernel[LABEL_BYTES], architecture[LABEL_BYTES], library_version[LABEL_BYTES], compiler[LABEL_BYTES];
} labels;

/* The rest of the line that starts with `name`, among a key's first lines; empty where there is none, cut where it is long. */
static void find_label(const cache_head *head, const char *name, char value[LABEL_BYTES])
{
    enum { LINES = 8 };
    const char *line = head->bytes, *end = head->bytes + head->n;
    size_t n_name = strlen(name);
    value[0] = 0;
    for (int i = 0; i < LINES && line < end; i++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t n = (size_t)((stop ? stop : end) - line);
        if (n >= n_name && memcmp(line, name, n_name) == 0) {
            n -= n_name;
            n = n < LABEL_BYTES ? n : LABEL_BYTES - 1;
            memcpy(value, line + n_name, n);
            value[n] = 0;
            return;
        }
        line += n + 1;
    }
}

static void find_labels(const cache_head *head, labels *found)
{
    char number[LABEL_BYTES];
    find_label(head, "kernel ", found->kernel);
    find_label(head, "architecture ", found->architecture);
    find_label(head, "onelaunch ", found->library_version);
    find_label(head, "nvrtc ", number);
    snprintf(found->compiler, sizeof found->compiler, "%s%.120s", *number ? "nvrtc " : "", number);
}

ol_status ol_cache_list(ol_cache_visit visit, void *user, ol_error *error)
{
    const char *operation = "list the cache";
    cache_files files;
    int folder, stopped = 0;
    if (!visit)
        return fail(error, OL_ERROR_ARGUMENT, operation, "the visit is NULL");
    ol_status status = find(&folder, &files, operation, error);
    if (status != OL_OK || folder < 0)
        return status;
    for (uint32_t i = files.n; !stopped && i-- > 0;) {
        const cache_file *file = &files.items[files.order[i]];
        cache_head head = { .n = 0 };
        labels found = { .kernel = "" };
        struct stat s;
        if (file->is_temporary)
            continue;
        int is_sound = cache_entry_check(folder, file->name, &head);
        if (is_sound)
            find_labels(&head, &found);
        else if (fstatat(folder, file->name, &s, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
            continue;
        const ol_cache_entry entry = { .file = file->name, .kernel = found.kernel, .architecture = found.architecture,
                                       .library_version = found.library_version, .compiler = found.compiler,
                                       .n_bytes = file->n_bytes, .last_used = file->seconds, .is_sound = is_sound };
        stopped = visit(user, &entry) != 0;
    }
    cache_files_free(&files);
    close(folder);
    return OL_OK;
}

/* ---- Emptying ---- */

ol_status ol_cache_clear(uint64_t *n_removed, uint64_t *n_bytes, ol_error *error)
{
    const char *operation = "clear the cache";
    cache_files files;
    int folder;
    uint64_t removed = 0, bytes = 0;
    const char *kept = NULL;                     /* the first that could not be removed, and why */
    int code = 0;
    ol_status status = find(&folder, &files, operation, error);
    if (status != OL_OK)
        return status;
    for (uint32_t i = 0; i < files.n; i++) {
        const cache_file *file = &files.items[i];
        if (unlinkat(folder, file->name, 0) == 0) {
            removed++;
            bytes += file->n_bytes;
        } else if (errno != ENOENT && !kept) {
            code = errno;
            kept = file->name;
        }
    }
    if (kept)
        status = fail(error, OL_ERROR_DEVICE, operation, "%s cannot be removed: %s; %" PRIu64 " of %" PRIu32 " files were removed", kept,
                      strerrordesc_np(code), removed, files.n);
    cache_files_free(&files);
    if (folder >= 0)
        close(folder);
    if (status == OL_OK && n_removed)
        *n_removed = removed;
    if (status == OL_OK && n_bytes)
        *n_bytes = bytes;
    return status;
}
