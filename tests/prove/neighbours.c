/* See check.h. Vectors and blocks with an open element are done again whole, and short runs go another way than long ones. */
#include "check.h"

#include <string.h>

enum { PATTERNS = 65536, ORDERS = 64, LONGEST = 600 };

static _Thread_local uint16_t in[PATTERNS];
static _Thread_local uint32_t first[PATTERNS], again[PATTERNS];           /* as wide as any result */

uint64_t check_neighbours(const run *r, kernel_fn kernel) {
    size_t size = run_result_bytes(r);
    uint64_t n_differing = 0;
    for (uint32_t i = 0; i < PATTERNS; i++) in[i] = (uint16_t)i;
    kernel(first, in, in, in, PATTERNS);
    for (uint32_t order = 0; order < ORDERS; order++) {
        uint32_t step = (uint32_t)digest_mix(order) | 1u, start = (uint32_t)digest_mix(order + 1000);     /* odd: a permutation */
        for (uint32_t i = 0; i < PATTERNS; i++) in[i] = (uint16_t)(start + i * step);
        for (uint32_t done = 0, length; done < PATTERNS; done += length) {
            length = 1 + (uint32_t)(digest_mix(order * (uint64_t)PATTERNS + done) % LONGEST);
            length = length < PATTERNS - done ? length : PATTERNS - done;
            kernel((char *)again + done * size, in + done, in + done, in + done, length);
        }
        for (uint32_t i = 0; i < PATTERNS; i++)
            n_differing += memcmp((char *)again + i * size, (char *)first + in[i] * size, size) != 0;
    }
    return n_differing;
}
