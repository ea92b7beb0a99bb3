/* The chunks of a digest from a GPU: inputs made there, results hashed here while the next ones are computed and copied. */
#ifndef ONELAUNCH_TOOLS_DIGEST_DEVICE_H
#define ONELAUNCH_TOOLS_DIGEST_DEVICE_H

#include <onelaunch.h>
#include <stdint.h>

/* What is hashed, and where to: n inputs, stride apart (digest.h), of a composite of one primitive or conversion; a digest for each chunk.
 * `progress` is called on the caller's thread with the number of chunks that were computed since. */
typedef struct digest_work {
    ol_device *device;
    const ol_composite *composite;
    uint64_t n, stride;
    uint64_t *chunks;
    void (*progress)(void *user, int64_t n_chunks);
    void *user;
} digest_work;

ol_status digest_on_device(const digest_work *work, ol_error *error);

#endif
