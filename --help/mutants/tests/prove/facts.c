/* See facts.h. */
#include "facts.h"
#include "cli.h"
#include "digest.h"
#include "runs.h"

#include <errno.h>
#include <gnu/libc-version.h>
#include <mpfr.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

/* "model name" on x86; on AArch64 the implementer and the part, which is all that the kernel says. */
static void find_processor(char *name, size_t bytes) {
    static const char *const keys[] = { "model name", "CPU implementer", "CPU part" };
    char line[512];
    bool found[3] = { false };
    FILE *file = fopen("/proc/cpuinfo", "r");
    name[0] = 0;
    while (file && fgets(line, sizeof line, file))
        for (int i = 0; i < 3; i++) {
            char *value = strstr(line, ": ");
            if (found[i] || !value || strncmp(line, keys[i], strlen(keys[i]))) continue;
            found[i] = true;
            value[strcspn(value, "\n")] = 0;
            size_t used = strlen(name);
            snprintf(name + used, bytes - used, "%s%s%s", used ? ", " : "", i ? keys[i] : "", i ? value + 1 : value + 2);
        }
    if (file) fclose(file);
    if (!name[0]) snprintf(name, bytes, "unknown");
}

static bool digest_of_program(const char *command, char digest[17]) {
    enum { PIECE = 1 << 16 };
    char *piece = malloc(PIECE);
    digest_stream *stream = digest_stream_new();
    FILE *file = fopen("/proc/self/exe", "rb");
    bool ok = piece && stream && file;
    if (ok) {
        digest_stream_begin(stream);
        for (size_t n; (n = fread(piece, 1, PIECE, file)) > 0;) digest_stream_add(stream, piece, n);
        ok = !ferror(file);
        snprintf(digest, 17, "%016llx", (unsigned long long)digest_stream_end(stream));
    }
    if (!ok) cli_error(command, "/proc/self/exe: %s", strerror(errno));
    if (file) fclose(file);
    digest_stream_free(stream);
    free(piece);
    return ok;
}

bool facts_gather(const char *command, prove_facts *f) {
    struct utsname name;
    struct tm utc;
    time_t now = time(NULL);
    *f = (prove_facts){ .architecture = "unknown", .system = "unknown",
#ifdef __clang__
                  .compiler = "clang " __clang_version__,
#else
                  .compiler = "gcc " __VERSION__,
#endif
    };
    find_processor(f->processor, sizeof f->processor);
    if (!uname(&name)) {
        snprintf(f->architecture, sizeof f->architecture, "%s", name.machine);
        snprintf(f->system, sizeof f->system, "%s %s", name.sysname, name.release);
    }
    snprintf(f->reference, sizeof f->reference, "glibc %s %s, MPFR %s", gnu_get_libc_version(), approximation_name(), mpfr_get_version());
    if (gmtime_r(&now, &utc)) strftime(f->date, sizeof f->date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return digest_of_program(command, f->executable);
}
