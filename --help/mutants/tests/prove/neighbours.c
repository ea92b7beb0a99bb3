/* See check.h. Vectors and blocks with an open element are done again whole, and short runs go another way than long ones: first in
 * runs that are computed, against the results of runs of one length; then in longer ones, which fill tables and are looked up
 * (src/cpu/table16.h). */
#include "check.h"

#include "cpu/table16.h"

#include <pthread.h>
#include <string.h>

enum { PATTERNS = 65536, ORDERS = 64, FIRST_RUN = 256, LONGEST_COMPUTED = 511, LONGEST = 5000 };

static _Thread_local uint16_t in[PATTERNS];
static _Thread_local uint32_t first[PATTERNS], again[PATTERNS];           /* as wide as any result */

/* Tables are shared by levels: emptied first, so that this level's long runs are computed by it. One at a time, since nothing else in a proof
 * makes runs that are so long. */
static pthread_mutex_t tables = PTHREAD_MUTEX_INITIALIZER;

static uint64_t n_differing_of(const run *r, kernel_fn kernel) {
    size_t size = run_result_bytes(r);
    uint64_t n_differing = 0;
    for (uint32_t i = 0; i < PATTERNS; i++) in[i] = (uint16_t)i;
    for (uint32_t i = 0; i < PATTERNS; i += FIRST_RUN) kernel((char *)first + i * size, in + i, in + i, in + i, FIRST_RUN);
    for (uint32_t order = 0; order < ORDERS; order++) {
        uint32_t step = (uint32_t)digest_mix(order) | 1u, start = (uint32_t)digest_mix(order + 1000);     /* odd: a permutation */
        uint32_t longest = order < ORDERS / 2 ? LONGEST_COMPUTED : LONGEST;
        for (uint32_t i = 0; i < PATTERNS; i++) in[i] = (uint16_t)(start + i * step);
        for (uint32_t done = 0, length; done < PATTERNS; done += length) {
            length = 1 + (uint32_t)(digest_mix(order * (uint64_t)PATTERNS + done) % longest);
            length = length < PATTERNS - done ? length : PATTERNS - done;
            kernel((char *)again + done * size, in + done, in + done, in + done, length);
        }
        for (uint32_t i = 0; i < PATTERNS; i++)
            n_differing += memcmp((char *)again + i * size, (char *)first + in[i] * size, size) != 0;
    }
    return n_differing;
}

uint64_t check_neighbours(const run *r, kernel_fn kernel) {
    pthread_mutex_lock(&tables);
    table16_forget();
    uint64_t n_differing = n_differing_of(r, kernel);
    pthread_mutex_unlock(&tables);
    return n_differing;
}
