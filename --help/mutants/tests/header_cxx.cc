// The public header alone, as C++17: C linkage, no C-only construct, usable from a lambda-shaped callback.
#include <onelaunch.h>
#include <onelaunch.h>

static_assert(OL_ERROR_TEXT == 9, "status values are pinned");

static int build(ol_graph *graph, const ol_value *in, ol_value *out, void *) {
    out[0] = ol_exp(graph, ol_negative(graph, ol_add(graph, in[0], ol_constant(graph, OL_FLOAT32, 1.0))));
    return 0;
}

int header_cxx() {
    ol_builder builder = {build, nullptr, 1, 1, "header"};
    ol_cpu_options options = {};
    options.parallel_for = [](void *, size_t n_tasks, ol_task task, void *argument) {
        for (size_t i = 0; i < n_tasks; i++) task(argument, i);
    };
    ol_device *device = nullptr;
    ol_composite *composite = nullptr;
    ol_error error;
    const ol_dtype dtype = OL_FLOAT32;
    return ol_device_cpu(&options, &device, &error) != OL_OK || ol_compile(device, &builder, &dtype, &composite, &error) != OL_OK;
}
