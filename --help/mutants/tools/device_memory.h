/* Tensors for a device that may have memory of its own.
 *
 * The commands read, make and compare values in the host's memory. A mirror is the same tensor where the device computes: on a
 * GPU in memory of the device, to and from which the elements are copied; on a CPU the host's tensor itself, and every function
 * here does nothing. So a command is written once: fill the host's tensor, mirror_up, replay the mirrors, mirror_down.
 *
 * Host tensors are contiguous. All happens in the stream NULL. */
#ifndef ONELAUNCH_TOOLS_DEVICE_MEMORY_H
#define ONELAUNCH_TOOLS_DEVICE_MEMORY_H

#include <onelaunch.h>
#include <stdbool.h>

/* Whether the device computes in memory that is not the host's. */
bool device_has_memory(const ol_device *device);

/* The bytes of a contiguous tensor. */
size_t tensor_bytes(const ol_tensor *tensor);

/* Makes the mirror of a tensor, its elements undefined where it is another one. On failure the mirror's data is NULL. */
ol_status mirror_make(ol_device *device, const ol_tensor *host, ol_tensor *mirror, ol_error *error);
/* Also one that was never made, all zero. */
void mirror_free(ol_device *device, ol_tensor *mirror);
/* Copies the host's elements to the mirror; what is in the stream already is done before, what comes later finds them. The host's
 * may be changed once it returns. */
ol_status mirror_up(ol_device *device, const ol_tensor *host, const ol_tensor *mirror, ol_error *error);
/* Waits for the stream, whose errors it reports, and copies the mirror's elements to the host. */
ol_status mirror_down(ol_device *device, const ol_tensor *host, const ol_tensor *mirror, ol_error *error);

/* The same of n tensors, one after the other. On failure mirrors_make has made none of them. */
ol_status mirrors_make(ol_device *device, const ol_tensor *hosts, int32_t n, ol_tensor *mirrors, ol_error *error);
void mirrors_free(ol_device *device, int32_t n, ol_tensor *mirrors);
ol_status mirrors_up(ol_device *device, const ol_tensor *hosts, int32_t n, const ol_tensor *mirrors, ol_error *error);
ol_status mirrors_down(ol_device *device, const ol_tensor *hosts, int32_t n, const ol_tensor *mirrors, ol_error *error);

#endif
