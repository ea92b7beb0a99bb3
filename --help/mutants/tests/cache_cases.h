/* What the tests of the disk cache share: a folder of its own for each test, which the environment names; keys and images; and
 * what a reader must see. */
#ifndef OL_CACHE_CASES_H
#define OL_CACHE_CASES_H

#include "graph_cases.h"

#include "cuda/cache.h"
#include "cuda/cache_entry.h"

#include <limits.h>
#include <sys/stat.h>

/* The test's folder, and the cache's in it, which does not exist yet. */
extern char scratch[PATH_MAX - 600], folder[PATH_MAX - 300];
int cache_set_up(void **state);
int cache_tear_down(void **state);
#define CACHE_TEST(name) cmocka_unit_test_setup_teardown(name, cache_set_up, cache_tear_down)

/* A path in the test's folder, in the cache's, and of a key's entry; four of them live at once. */
const char *in_scratch(const char *name);
const char *in_folder(const char *name);
const char *path_of(const text *key);

int exists(const char *path);            /* links are not followed, here and below */
mode_t mode_of(const char *path);
void set_age(const char *path, long seconds);
void put_file(const char *path, const void *bytes, size_t n);
size_t get_file(const char *path, unsigned char *bytes, size_t room);

text empty_text(void);
text text_from(const char *bytes);
text random_text(uint64_t seed, size_t n);
text key_of(const char *kernel);         /* with the first lines of a real one */

/* A hit appends exactly the image; a miss leaves what was there. */
void assert_hit(const text *key, const text *image);
void assert_miss(const text *key);

/* What a listing visits: counts, and the start of each kernel's name. `limit`: end it after so many. */
typedef struct counts {
    int n_sound, n_damaged, limit;
    char order[32][16];
} counts;
int count_entry(void *user, const ol_cache_entry *entry);
counts list(void);

#endif
