/* What all devices share: reference counting and the launch count. */
#include "backend.h"

void device_release(ol_device *device)
{
    if (atomic_fetch_sub_explicit(&device->references, 1, memory_order_acq_rel) == 1)
        device->backend->destroy(device);
}

void ol_device_destroy(ol_device *device)
{
    if (device)
        device_release(device);
}

uint64_t ol_device_launches(const ol_device *device)
{
    return device ? atomic_load_explicit(&device->launches, memory_order_relaxed) : 0;
}

const char *ol_device_name(const ol_device *device)
{
    return device ? device->backend->name : NULL;
}

const char *ol_device_level(const ol_device *device)
{
    return device ? device->backend->level(device) : NULL;
}
