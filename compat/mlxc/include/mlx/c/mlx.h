/* mlx-c's interface over onelaunch: programs written against mlx-c trace, compile and replay elementwise composites with this library,
 * on CPUs and NVIDIA GPUs, without MLX. docs/mlx-c.md lists what is covered; what is not is absent, and fails at link time by name.
 *
 * Handles are structs of one pointer, passed by value; a null one is an empty handle. Functions return 0, or 1 after they told the
 * error handler (error.h). Results go to a first parameter that is an empty handle, which is filled, or a live one, which is
 * assigned; on an error it is untouched. Each *_new has a *_free, which takes empty handles too. Any thread may call anything, but
 * a handle that one thread assigns or frees is not used by another meanwhile. */
#ifndef MLX_C_MLX_H
#define MLX_C_MLX_H

#include "mlx/c/array.h"
#include "mlx/c/closure.h"
#include "mlx/c/compile.h"
#include "mlx/c/device.h"
#include "mlx/c/error.h"
#include "mlx/c/ops.h"
#include "mlx/c/stream.h"
#include "mlx/c/string.h"
#include "mlx/c/vector.h"
#include "mlx/c/version.h"

#endif
