/* What the fuzzers of graphs share: a device of the lowest and one of the best SIMD level, and comparing a composite's composed
 * path and replays on tensors that are derived from the input bytes. */
#ifndef ONELAUNCH_COMPARE_REPLAYS_H
#define ONELAUNCH_COMPARE_REPLAYS_H

#include <onelaunch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* 0: baseline; 1: the best there is. Single-threaded; made once and kept. */
ol_device *fuzz_device(int best);

/* Both composites are of one graph, for fuzz_device(0) and (1). Aborts on a difference. Does nothing where the graph is too
 * large to be worth it, or its shapes do not fit. */
void fuzz_replay(const ol_composite *baseline, const ol_composite *best, const uint8_t *data, size_t size);

#endif
