/* Where errors go. */
#ifndef MLX_C_ERROR_H
#define MLX_C_ERROR_H

#include "mlx/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called once for each error, on the thread that made it, with no lock held: it may call any function of this interface, itself
 * set a handler, or leave by longjmp (what a closure that is left so had traced is lost). `msg` is text, never a format, and lives during the call. */
typedef void (*mlx_error_handler_func)(const char *msg, void *data);

/* Errors of the whole process go to `handler` from now on; NULL brings back the default one, which prints "MLX error: …" to the
 * standard output and exits with code 255. `data` is handed to the handler, with or without a dtor. `dtor` (NULL is allowed) is
 * called with it once, when another handler has taken over and no call of this one is under way any more; one that was left by longjmp
 * is under way for good. */
MLX_C_API void mlx_set_error_handler(mlx_error_handler_func handler, void *data, void (*dtor)(void *));

#ifdef __cplusplus
}
#endif
#endif
