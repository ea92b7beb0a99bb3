/* The folder of the disk cache: where it is, that nothing unsafe in it or of it is used, how much it holds, and what a listing
 * shows. */
#include "cache_cases.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STRANGER = 12345 };               /* another user */

static int count_files(void)
{
    struct dirent **files;
    int n = scandir(folder, &files, NULL, NULL);
    for (int i = 0; i < n; i++)
        free(files[i]);
    free(files);
    return n - 2;                        /* . and .. */
}

static void assert_list_fails(const char *description)
{
    ol_error error;
    counts c = { 0 };
    assert_fails(ol_cache_list(count_entry, &c, &error), &error, OL_ERROR_DEVICE, "list the cache", description);
    assert_int_equal(c.n_sound + c.n_damaged, 0);
}

static void assert_clear_fails(const char *description)
{
    ol_error error;
    uint64_t n_removed = 7, n_bytes = 7;
    assert_fails(ol_cache_clear(&n_removed, &n_bytes, &error), &error, OL_ERROR_DEVICE, "clear the cache", description);
    assert_true(n_removed == 7 && n_bytes == 7);
}

/* ---- Files that are not what they should be ---- */

static void unsafe_files_miss(void **state)
{
    (void)state;
    text key = key_of("unsafe"), image = text_from("image");
    const mode_t writable[] = { 0666, 0620, 0602, 0777, 0622 }, fine[] = { 0600, 0644, 0400, 0444, 0755 };
    cache_write(&key, &image);
    for (size_t i = 0; i < COUNT(writable); i++) {
        assert_int_equal(chmod(path_of(&key), writable[i]), 0);
        assert_miss(&key);
        assert_int_equal(list().n_damaged, 1);
    }
    for (size_t i = 0; i < COUNT(fine); i++) {
        assert_int_equal(chmod(path_of(&key), fine[i]), 0);
        assert_hit(&key, &image);
    }
    assert_int_equal(chmod(path_of(&key), 0666), 0);
    cache_write(&key, &image);
    assert_hit(&key, &image);
    assert_int_equal(mode_of(path_of(&key)), 0600);

    assert_int_equal(rename(path_of(&key), in_scratch("elsewhere")), 0);
    assert_int_equal(symlink(in_scratch("elsewhere"), path_of(&key)), 0);
    assert_miss(&key);
    assert_int_equal(list().n_damaged, 1);
    cache_write(&key, &image);                               /* in place of the link, not of what it points to */
    assert_hit(&key, &image);
    assert_int_equal(unlink(path_of(&key)), 0);
    assert_true(exists(in_scratch("elsewhere")));
    assert_int_equal(symlink("nowhere", path_of(&key)), 0);
    assert_miss(&key);
    assert_int_equal(unlink(path_of(&key)), 0);

    assert_int_equal(mkfifo(path_of(&key), 0600), 0);
    assert_miss(&key);                                       /* and does not wait for a writer */
    assert_int_equal(list().n_damaged, 1);
    cache_write(&key, &image);
    assert_hit(&key, &image);
    assert_int_equal(unlink(path_of(&key)), 0);

    assert_int_equal(mkdir(path_of(&key), 0700), 0);
    assert_miss(&key);
    cache_write(&key, &image);                               /* a folder stays, and nothing else is left */
    assert_miss(&key);
    assert_int_equal(count_files(), 1);
    assert_clear_fails(".kernel cannot be removed: Is a directory; 0 of 1 files were removed");
    assert_int_equal(rmdir(path_of(&key)), 0);
    assert_int_equal(rmdir(folder), 0);                      /* empty */
    text_free(&key);
    text_free(&image);
}

static void files_of_others_miss(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    text key = key_of("theirs"), image = text_from("image");
    cache_write(&key, &image);
    assert_int_equal(chown(path_of(&key), STRANGER, (gid_t)-1), 0);
    assert_miss(&key);
    assert_int_equal(list().n_damaged, 1);
    cache_write(&key, &image);
    assert_hit(&key, &image);
    assert_int_equal(chown(folder, STRANGER, (gid_t)-1), 0);
    assert_miss(&key);
    text second = key_of("second");
    cache_write(&second, &image);
    assert_false(exists(path_of(&second)));
    assert_list_fails("must belong to the user");
    assert_clear_fails("must belong to the user");
    assert_true(exists(path_of(&key)));

    /* Root with another user's HOME leaves no folders of root's there. */
    assert_int_equal(mkdir(in_scratch("home"), 0755), 0);
    assert_int_equal(chown(in_scratch("home"), STRANGER, (gid_t)-1), 0);
    unsetenv("ONELAUNCH_CACHE");
    setenv("HOME", in_scratch("home"), 1);
    cache_write(&key, &image);
    assert_false(exists(in_scratch("home/.cache")));
    text_free(&key);
    text_free(&second);
    text_free(&image);
}

/* ---- The folder ---- */

static void unsafe_folders_are_not_used(void **state)
{
    (void)state;
    text key = key_of("k"), second = key_of("second"), image = text_from("image");
    const mode_t modes[] = { 0777, 0770, 0720, 0702, 01777 };
    cache_write(&key, &image);
    for (size_t i = 0; i < COUNT(modes); i++) {
        assert_int_equal(chmod(folder, modes[i]), 0);
        assert_miss(&key);
        cache_write(&second, &image);
        assert_false(exists(path_of(&second)));
        assert_list_fails("writable by no one else");
        assert_clear_fails("writable by no one else");
    }
    assert_int_equal(chmod(folder, 0755), 0);
    assert_hit(&key, &image);

    assert_int_equal(rename(folder, in_scratch("real")), 0);     /* a link to a safe folder is as good */
    assert_int_equal(symlink("real", folder), 0);
    assert_hit(&key, &image);
    cache_write(&second, &image);
    assert_hit(&second, &image);
    assert_int_equal(chmod(in_scratch("real"), 0777), 0);
    assert_miss(&key);
    assert_int_equal(unlink(folder), 0);
    assert_int_equal(symlink("dangling", folder), 0);
    cache_write(&key, &image);
    assert_miss(&key);
    assert_false(exists(in_scratch("dangling")));
    assert_int_equal(unlink(folder), 0);

    put_file(folder, "a file", 6);
    cache_write(&key, &image);
    assert_miss(&key);
    assert_list_fails("cannot be read: Not a directory");
    setenv("ONELAUNCH_CACHE", in_scratch("cache/inner"), 1);
    cache_write(&key, &image);
    assert_miss(&key);
    assert_int_equal(unlink(folder), 0);
    assert_int_equal(mkfifo(folder, 0600), 0);
    cache_write(&key, &image);
    assert_miss(&key);
    text_free(&key);
    text_free(&second);
    text_free(&image);
}

/* Runs a part in a child, whose rights and limits may be lowered; 77: it could not be run there. */
static void in_child(int (*part)(const text *key, const text *image), const text *key, const text *image)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(part(key, image));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        print_message("skipped: %s is out of reach for another user\n", scratch);
    else
        assert_int_equal(WEXITSTATUS(status), 0);
}

static int reads_only(const text *key, const text *image)
{
    text got = empty_text(), second = key_of("second");
    if (geteuid() == 0 && (setgid(STRANGER) != 0 || setuid(STRANGER) != 0 || access(folder, R_OK | X_OK) != 0))
        return 77;
    if (!cache_read(key, &got) || got.n != image->n)
        return 1;
    cache_write(&second, image);
    if (exists(path_of(&second)) || cache_read(&second, &got))
        return 2;
    return ol_cache_clear(NULL, NULL, NULL) == OL_ERROR_DEVICE ? 0 : 3;
}

static void an_unwritable_folder_is_read(void **state)
{
    (void)state;
    text key = key_of("k"), image = text_from("image");
    cache_write(&key, &image);
    if (geteuid() == 0) {
        assert_int_equal(chown(path_of(&key), STRANGER, STRANGER) | chown(folder, STRANGER, STRANGER) | chmod(scratch, 0755), 0);
    }
    assert_int_equal(chmod(folder, 0500), 0);
    in_child(reads_only, &key, &image);
    assert_true(exists(path_of(&key)));
    text_free(&key);
    text_free(&image);
}

static int writes_with_a_limit(const text *key, const text *image)
{
    text got = empty_text();
    struct rlimit limit = { cache_entry_size(key, image) - 1, RLIM_INFINITY };
    setrlimit(RLIMIT_FSIZE, &limit);
    cache_write(key, image);                                 /* SIGXFSZ would end the process */
    if (cache_read(key, &got))
        return 1;
    limit.rlim_cur++;
    setrlimit(RLIMIT_FSIZE, &limit);
    cache_write(key, image);
    return cache_read(key, &got) ? 0 : 2;
}

static int has_no_descriptors(const text *key, const text *image)
{
    text got = empty_text(), second = key_of("second");
    cache_write(key, image);
    for (int kept = 0; kept < 4; kept++) {                   /* that so many can be opened */
        int n = 3;
        while (n < 64 && fcntl(n, F_GETFD) >= 0)
            n++;
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = (rlim_t)(n + kept);
        setrlimit(RLIMIT_NOFILE, &limit);
        got.n = 0;
        int hit = cache_read(key, &got);
        if (hit != (kept >= 2) || (hit && got.n != image->n))
            return 1 + kept;
        cache_write(&second, image);
        if (exists(path_of(&second)) != (kept >= 2))
            return 10 + kept;
    }
    return 0;
}

static void limits_of_the_process_are_kept(void **state)
{
    (void)state;
    text key = key_of("k"), image = random_text(harness_seed, 5000);
    in_child(writes_with_a_limit, &key, &image);
    assert_int_equal(list().n_sound, 1);
    in_child(has_no_descriptors, &key, &image);
    assert_int_equal(list().n_damaged, 0);
    text_free(&key);
    text_free(&image);
}

static const char *folder_text(void)
{
    static char buffer[PATH_MAX];
    size_t n = ol_cache_folder(buffer, sizeof buffer);
    assert_int_equal(n, strlen(buffer));
    assert_int_equal(ol_cache_folder(NULL, 0), n);
    return buffer;
}

static void the_environment_says_where(void **state)
{
    (void)state;
    text key = key_of("k"), image = text_from("image");
    const char *off[] = { "off", "cache", "./cache", "0", " " };
    char small[6];
    assert_string_equal(folder_text(), folder);
    assert_int_equal(ol_cache_folder(small, sizeof small), strlen(folder));
    assert_int_equal(strlen(small), 5);
    assert_memory_equal(small, folder, 5);
    for (size_t i = 0; i < COUNT(off); i++) {
        counts c = { 0 };
        uint64_t n_removed = 7, n_bytes = 7;
        ol_error error;
        setenv("ONELAUNCH_CACHE", off[i], 1);
        assert_string_equal(folder_text(), "");
        cache_write(&key, &image);
        assert_miss(&key);
        assert_false(exists(off[i]));
        assert_ok(ol_cache_list(count_entry, &c, &error), &error);
        assert_ok(ol_cache_clear(&n_removed, &n_bytes, &error), &error);
        assert_true(c.n_sound + c.n_damaged == 0 && n_removed == 0 && n_bytes == 0);
    }
    assert_false(exists(in_scratch(".cache")));

    umask(0);                                                /* the modes do not depend on it */
    setenv("ONELAUNCH_CACHE", "", 1);
    assert_string_equal(folder_text(), in_scratch(".cache/onelaunch"));
    cache_write(&key, &image);
    assert_hit(&key, &image);
    assert_int_equal(mode_of(in_scratch(".cache")), 0700);
    assert_int_equal(mode_of(in_scratch(".cache/onelaunch")), 0700);
    unsetenv("ONELAUNCH_CACHE");
    assert_hit(&key, &image);
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_hit(&key, &image);
    setenv("XDG_CACHE_HOME", in_scratch("a//b/c/"), 1);
    assert_miss(&key);
    cache_write(&key, &image);
    assert_hit(&key, &image);
    assert_int_equal(mode_of(in_scratch("a")) | mode_of(in_scratch("a/b")) | mode_of(in_scratch("a/b/c/onelaunch")), 0700);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_string_equal(folder_text(), "");
    cache_write(&key, &image);
    assert_miss(&key);

    char *long_path = calloc(1, 3 * PATH_MAX);
    memset(long_path, '/', 2 * PATH_MAX);
    strcat(long_path, "x");
    setenv("ONELAUNCH_CACHE", long_path, 1);
    assert_int_equal(ol_cache_folder(NULL, 0), 2 * PATH_MAX + 1);
    cache_write(&key, &image);
    assert_miss(&key);
    free(long_path);
    text_free(&key);
    text_free(&image);
}

/* ---- The bound ---- */

static void the_bound_is_parsed_strictly(void **state)
{
    (void)state;
    static const struct { const char *text; uint64_t mib; } rows[] = {
        { "1", 1 }, { "256", 256 }, { "0", 0 }, { "007", 7 }, { "1000000", 1000000 },
        { "", 256 }, { "-1", 256 }, { "+1", 256 }, { " 1", 256 }, { "1 ", 256 }, { "1M", 256 }, { "0x10", 256 }, { "1.5", 256 },
        { "99999999999999999999", 256 }, { "18446744073709551617", 256 }, { "17592186044417", 256 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        setenv("ONELAUNCH_CACHE_MIB", rows[i].text, 1);
        assert_int_equal(cache_folder_bound(), rows[i].mib << 20);
    }
    unsetenv("ONELAUNCH_CACHE_MIB");
    assert_int_equal(cache_folder_bound(), 256 << 20);
    setenv("ONELAUNCH_CACHE_MIB", "0", 1);
    text key = key_of("k"), image = text_from("image");
    cache_write(&key, &image);
    assert_miss(&key);
    text_free(&key);
    text_free(&image);
}

static void what_was_used_longest_ago_goes_first(void **state)
{
    (void)state;
    enum { N = 11, SIZE = 100000 };                          /* ten are below a mebibyte, eleven not; seven below 3/4 of it */
#define HASH "0123456789abcdef0123456789abcdef"
    static const char *const others[] = { "README", HASH, HASH ".kernel.old", HASH "0.kernel", "0123456789abcdef.kernel",
                                          "0123456789ABCDEF0123456789ABCDEF.kernel", HASH ".temp", HASH ".0123.temp",
                                          HASH ".0123456789abcdef.tem", HASH ".0123456789abcdeg.temp" };
    static const char stale[] = HASH ".0123456789abcdef.temp", fresh[] = HASH ".0123456789abcde0.temp";
    text keys[N], image = random_text(harness_seed, SIZE);
    setenv("ONELAUNCH_CACHE_MIB", "1", 1);
    for (int i = 0; i < N; i++) {
        char kernel[16];
        snprintf(kernel, sizeof kernel, "k%d", i);
        keys[i] = key_of(kernel);
    }
    for (int i = 0; i + 1 < N; i++) {
        cache_write(&keys[i], &image);
        set_age(path_of(&keys[i]), 100000 - 10 * i);         /* k0 the oldest */
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        put_file(in_folder(others[i]), "not ours", 8);
        set_age(in_folder(others[i]), 1000000);
    }
    put_file(in_folder(stale), "x", 1);
    put_file(in_folder(fresh), "x", 1);
    set_age(in_folder(stale), 3700);
    set_age(in_folder(fresh), 3500);
    counts c = list();
    assert_int_equal(c.n_sound, N - 1);
    assert_int_equal(c.n_damaged, 0);
    for (int i = 0; i + 1 < N; i++)
        assert_int_equal(atoi(c.order[i] + 1), N - 2 - i);   /* newest first */
    assert_hit(&keys[0], &image);                            /* now the newest */
    assert_hit(&keys[2], &image);
    assert_string_equal(list().order[N - 2], "k1");
    assert_true(exists(in_folder(stale)));
    cache_write(&keys[N - 1], &image);
    for (int i = 0; i < N; i++)
        if (i == 1 || (i >= 3 && i <= 5))                    /* eleven less four are seven */
            assert_miss(&keys[i]);
        else
            assert_hit(&keys[i], &image);
    assert_false(exists(in_folder(stale)));
    assert_true(exists(in_folder(fresh)));
    for (size_t i = 0; i < COUNT(others); i++)
        assert_true(exists(in_folder(others[i])));

    uint64_t n_removed, n_bytes;
    ol_error error;
    assert_ok(ol_cache_clear(&n_removed, &n_bytes, &error), &error);
    assert_int_equal(n_removed, 7 + 1);                      /* and the temporary file */
    assert_true(n_bytes > 7 * SIZE && n_bytes < 8 * SIZE);
    for (size_t i = 0; i < COUNT(others); i++)
        assert_true(exists(in_folder(others[i])));
    c = list();
    assert_int_equal(c.n_sound + c.n_damaged, 0);
    for (int i = 0; i < N; i++)
        text_free(&keys[i]);
    text_free(&image);
}

/* ---- Listing ---- */

typedef struct seen {
    ol_cache_entry entry;
    char file[100], kernel[200], architecture[200], library_version[200], compiler[200];
} seen;

static int see(void *user, const ol_cache_entry *entry)
{
    seen *s = user;
    s->entry = *entry;
    snprintf(s->file, sizeof s->file, "%s", entry->file);
    snprintf(s->kernel, sizeof s->kernel, "%s", entry->kernel);
    snprintf(s->architecture, sizeof s->architecture, "%s", entry->architecture);
    snprintf(s->library_version, sizeof s->library_version, "%s", entry->library_version);
    snprintf(s->compiler, sizeof s->compiler, "%s", entry->compiler);
    return 1;
}

static seen see_only(const char *key, size_t n)
{
    text k = empty_text(), image = text_from("image");
    seen s = { .entry.is_sound = -1 };
    ol_error error;
    char name[CACHE_NAME];
    text_add_bytes(&k, key, n);
    cache_write(&k, &image);
    cache_entry_name(&k, name);
    assert_ok(ol_cache_list(see, &s, &error), &error);
    assert_int_equal(s.entry.is_sound, 1);
    assert_string_equal(s.file, name);
    assert_int_equal(s.entry.n_bytes, cache_entry_size(&k, &image));
    assert_true(s.entry.last_used > time(NULL) - 100 && s.entry.last_used <= time(NULL) + 100);
    assert_ok(ol_cache_clear(NULL, NULL, &error), &error);
    text_free(&k);
    text_free(&image);
    return s;
}

static void a_listing_reads_any_key(void **state)
{
    (void)state;
    ol_error error;
    char key[3000], expected[200];
    text usual = key_of("rates");
    seen s = see_only(usual.bytes, usual.n);
    assert_string_equal(s.kernel, "rates");
    assert_string_equal(s.architecture, "sm_90");
    assert_string_equal(s.library_version, "1.2.3");
    assert_string_equal(s.compiler, "nvrtc 13.0");
    text_free(&usual);

    static const struct { const char *key, *kernel, *compiler; } rows[] = {
        { "", "", "" }, { "kernel", "", "" }, { "kernel ", "", "" }, { "kernel x", "x", "" },
        { "\n\n\n\n\n\n\nkernel x", "x", "" }, { "\n\n\n\n\n\n\n\nkernel x", "", "" }, { " kernel x\nkernels y\nnvrtc \n", "", "" },
        { "kernel a\nkernel b\nnvrtc 1", "a", "nvrtc 1" }, { "kernel \x1b[31m\xff\n", "\x1b[31m\xff", "" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        s = see_only(rows[i].key, strlen(rows[i].key));
        assert_string_equal(s.kernel, rows[i].kernel);
        assert_string_equal(s.compiler, rows[i].compiler);
        assert_string_equal(s.architecture, "");
    }
    s = see_only("kernel a\0b\nnvrtc 2", 18);
    assert_string_equal(s.kernel, "a");
    assert_string_equal(s.compiler, "nvrtc 2");
    memset(key, 'x', sizeof key);
    memcpy(key, "nvrtc ", 6);
    s = see_only(key, sizeof key);
    snprintf(expected, sizeof expected, "%.126s", key);
    assert_string_equal(s.compiler, expected);
    assert_string_equal(s.kernel, "");
    memset(key, '\n', sizeof key);
    memcpy(key + sizeof key - 9, "kernel x\n", 9);
    assert_string_equal(see_only(key, sizeof key).kernel, "");

    assert_fails(ol_cache_list(NULL, NULL, &error), &error, OL_ERROR_ARGUMENT, "list the cache", "NULL");
    text a = key_of("a"), b = key_of("b"), image = text_from("image");
    cache_write(&a, &image);
    cache_write(&b, &image);
    counts c = { .limit = 1 };
    assert_ok(ol_cache_list(count_entry, &c, NULL), &error);
    assert_int_equal(c.n_sound, 1);
    text_free(&a);
    text_free(&b);
    text_free(&image);
}

static void no_folder_is_an_empty_cache(void **state)
{
    (void)state;
    uint64_t n_removed = 7, n_bytes = 7;
    ol_error error;
    counts c = list();
    assert_int_equal(c.n_sound + c.n_damaged, 0);
    assert_ok(ol_cache_clear(&n_removed, &n_bytes, &error), &error);
    assert_true(n_removed == 0 && n_bytes == 0);
    assert_false(exists(folder));
}

static int clear_and_go_on(void *user, const ol_cache_entry *entry)
{
    (void)entry;
    ++*(int *)user;
    return ol_cache_clear(NULL, NULL, NULL);
}

static void a_listing_outlives_a_clearing(void **state)
{
    (void)state;
    text a = key_of("a"), b = key_of("b"), image = text_from("image");
    int n = 0;
    ol_error error;
    cache_write(&a, &image);
    cache_write(&b, &image);
    assert_ok(ol_cache_list(clear_and_go_on, &n, &error), &error);
    assert_int_equal(n, 1);
    text_free(&a);
    text_free(&b);
    text_free(&image);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CACHE_TEST(unsafe_files_miss), CACHE_TEST(files_of_others_miss), CACHE_TEST(unsafe_folders_are_not_used),
        CACHE_TEST(an_unwritable_folder_is_read), CACHE_TEST(limits_of_the_process_are_kept),
        CACHE_TEST(the_environment_says_where), CACHE_TEST(the_bound_is_parsed_strictly),
        CACHE_TEST(what_was_used_longest_ago_goes_first), CACHE_TEST(a_listing_reads_any_key),
        CACHE_TEST(no_folder_is_an_empty_cache), CACHE_TEST(a_listing_outlives_a_clearing),
    };
    return HARNESS_RUN(argc, argv, tests);
}
