/* See cache.h. */
#include "cuda/cache.h"

#include "cuda/cache_entry.h"

#include <time.h>
#include <unistd.h>

int cache_read(const text *key, text *image)
{
    char name[CACHE_NAME];
    int folder = key->broken ? -1 : cache_folder_open(0);
    if (folder < 0)
        return 0;
    cache_entry_name(key, name);
    int hit = cache_entry_read(folder, name, key, image);
    close(folder);
    return hit;
}

/* No writer takes an hour: what is older has none. */
static int is_stale(const cache_file *file, time_t now)
{
    enum { HOUR = 3600 };
    return file->is_temporary && file->is_plain && now - file->seconds > HOUR;
}

/* Other processes may do the same at the same time: a file that is gone already is as good as removed. */
static void evict(int folder, uint64_t bound, const ol_allocator *allocator)
{
    cache_files files = { .allocator = *allocator };
    uint64_t total = 0;
    time_t now = time(NULL);
    if (cache_files_find(folder, &files) == 0) {
        for (uint32_t i = 0; i < files.n; i++) {
            const cache_file *file = &files.items[i];
            if (is_stale(file, now))
                unlinkat(folder, file->name, 0);
            else if (!file->is_temporary && file->is_plain)
                total += file->n_bytes;
        }
        int is_over = total > bound;
        for (uint32_t i = 0; is_over && i < files.n && total > bound - bound / 4; i++) {
            const cache_file *file = &files.items[files.order[i]];
            if (file->is_temporary || !file->is_plain)
                continue;
            unlinkat(folder, file->name, 0);
            total -= file->n_bytes;
        }
    }
    cache_files_free(&files);
}

void cache_write(const text *key, const text *image)
{
    uint64_t bound = cache_folder_bound();
    if (key->broken || image->broken || image->n == 0)
        return;
    if (cache_entry_size(key, image) > bound - bound / 4)        /* it would evict all others, and then itself */
        return;
    int folder = cache_folder_open(1);
    if (folder < 0)
        return;
    cache_entry_write(folder, key, image);
    evict(folder, bound, &key->allocator);       /* also where the write failed: the disk may be full */
    close(folder);
}
