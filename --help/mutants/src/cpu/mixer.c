/* A mixer step on the CPU: one launch of two passes, every head of every sequence (mixer_worker.c), then the windows (mixer_window.c). */
#include "cpu/mixer_worker.h"

#include "status.h"

ol_status cpu_mixer_prepare(ol_gated_delta_mixer *m, ol_error *error)
{
    const cpu_device *device = (const cpu_device *)m->device;
    size_t n_bytes = (size_t)delta_head_blocks(&m->layer->options) * DELTA_BLOCK_FLOATS * sizeof(float);
    ol_status status = cpu_delta_prepare(m->layer, error);
    if (status != OL_OK)
        return status;
    m->prepared = workspace_create(&m->device->allocator, n_bytes, cpu_threads_count(device->threads));
    return m->prepared ? OL_OK : fail(error, OL_ERROR_MEMORY, "gated_delta_mixer_create", "no memory for states of heads, %zu bytes each", n_bytes);
}

void cpu_mixer_release(ol_gated_delta_mixer *m) { workspace_destroy(m->prepared); }

ol_status cpu_mixer_step(const mixer_call *c, ol_stream stream, ol_error *error)
{
    (void)stream;
    ol_status status = mixer_check_indices(c, error);
    if (status != OL_OK)
        return status;
    int padded = delta_zero_padding(&c->recurrence), run = delta_run(&c->recurrence, c), windows = mixer_write_windows(c);
    if (padded || run || windows)
        device_count_launch(c->mixer->device);
    return OL_OK;
}
