/* The numerics and the support of kernels as CUDA text (kernel_support.h, preprocessed when the library was built), cut into
 * declarations, so that a kernel's text holds those that it needs and no other. */
#ifndef OL_CUDA_DEVICE_TEXT_H
#define OL_CUDA_DEVICE_TEXT_H

#include "cuda/text.h"

/* Appends to `out` what the kernel text names, and what that names, in order. Functions that the kernel text itself names are
 * made to be called, not inlined, where they are long, or all of them: each is then compiled once, however often it is named. */
void device_text_for(text *out, const text *kernel, int all_called);

/* The whole of it, made by the build. */
extern const char device_text[];

#endif
