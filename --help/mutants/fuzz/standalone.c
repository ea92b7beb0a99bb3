/* A main for fuzzers without libFuzzer: runs each file given, and each file of each folder given. It is how the suite replays
 * the corpora, and how a crash that a fuzzer found is looked at with any compiler. Fails where there was nothing to run. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long n_run;

/* The input lies in memory of exactly its size, so that a sanitizer sees a read past its end. */
static int run_file(const char *path) {
    FILE *stream = fopen(path, "rb");
    uint8_t *data = NULL;
    long size = -1;
    int ok = stream && fseek(stream, 0, SEEK_END) == 0 && (size = ftell(stream)) >= 0 && fseek(stream, 0, SEEK_SET) == 0;
    ok = ok && (data = malloc((size_t)size + (size == 0))) && fread(data, 1, (size_t)size, stream) == (size_t)size;
    if (!ok) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
    } else {
        LLVMFuzzerTestOneInput(data, (size_t)size);
        n_run++;
    }
    free(data);
    if (stream) {
        fclose(stream);
    }
    return ok;
}

static int run_path(const char *path) {
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        DIR *folder = opendir(path);
        int ok = folder != NULL;
        for (struct dirent *entry; folder && (entry = readdir(folder));) {
            char inside[4096];
            if (entry->d_name[0] != '.') {
                snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
                ok &= run_path(inside);
            }
        }
        if (folder) {
            closedir(folder);
        }
        return ok;
    }
    return run_file(path);
}

int main(int argc, char **argv) {
    int ok = 1;
    for (int i = 1; i < argc; i++) {
        ok &= run_path(argv[i]);
    }
    printf("%ld inputs\n", n_run);
    return ok && n_run > 0 ? 0 : 1;
}
