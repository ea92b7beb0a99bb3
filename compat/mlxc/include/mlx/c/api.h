/* What every header of this folder needs: how a function is exported. */
#ifndef MLX_C_API_H
#define MLX_C_API_H

#if defined(__GNUC__)
#define MLX_C_API __attribute__((visibility("default")))
#else
#define MLX_C_API
#endif

#endif
