/* Opening the devices, and the handles that name them. */
#include "engine.h"

#include "report.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(mlxc_engine *) engines[2];        /* by mlx_device_type */
static atomic_int default_type = -1;             /* -1: not set yet */

static const char *device_name(void)
{
    const char *name = getenv("ONELAUNCH_DEVICE");
    return name && *name ? name : "cpu";
}

static int names_gpu(const char *name)
{
    return strcmp(name, "cuda") == 0 || strncmp(name, "cuda:", 5) == 0;
}

/* What these find wrong goes to *error: the handler is told once no lock is held. 0, or 1 after an error. */
__attribute__((format(printf, 2, 3))) static int refuse(ol_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->description, sizeof error->description, format, arguments);
    va_end(arguments);
    snprintf(error->operation, sizeof error->operation, "ONELAUNCH_DEVICE");
    return 1;
}

static int open_gpu(const char *name, mlxc_engine *e, ol_error *error)
{
    const char *digits = name[4] ? name + 5 : "0";
    size_t n = strlen(digits);
    if (n == 0 || n > 4 || strspn(digits, "0123456789") != n)
        return refuse(error, "%.200s was given; expected cuda, or cuda:N with the number of a GPU", name);
    if (ol_device_cuda(atoi(digits), NULL, &e->device, error) != OL_OK)
        return 1;
    if (ol_stream_create(e->device, &e->stream, error) != OL_OK) {
        ol_device_destroy(e->device);
        return 1;
    }
    e->is_gpu = 1;
    return 0;
}

static int refuse_level(const char *name, ol_error *error)
{
    char known[128] = "";
    size_t n = 0;
    const char *level;
    for (ol_cpu_level l = OL_CPU_AUTO; (level = ol_cpu_level_name(++l)) && n < sizeof known;)
        n += (size_t)snprintf(known + n, sizeof known - n, "%scpu:%s", n ? ", " : "", level);
    return refuse(error, "%.200s was given; expected cpu, or a SIMD level: %s", name, known);
}

static int open_cpu(const char *name, mlxc_engine *e, ol_error *error)
{
    ol_cpu_options options = { .level = OL_CPU_AUTO };
    if (strncmp(name, "cpu:", 4) == 0) {
        const char *level;
        while ((level = ol_cpu_level_name(++options.level)) && strcmp(level, name + 4) != 0)
            ;
        if (!level)
            return refuse_level(name, error);
    } else if (strcmp(name, "cpu") != 0 && !names_gpu(name)) {
        return refuse(error, "%.200s was given; expected cpu, cpu:LEVEL, cuda or cuda:N", name);
    }
    return ol_device_cpu(&options, &e->device, error) != OL_OK;
}

static mlxc_engine *open_engine(mlx_device_type type, ol_error *error)
{
    const char *name = device_name();
    mlxc_engine *e = atomic_load(&engines[type]);
    if (e || (type == MLX_GPU && !names_gpu(name)))
        return e ? e : open_engine(MLX_CPU, error);
    e = calloc(1, sizeof *e);
    if (!e) {
        *error = (ol_error){ .operation = "open the device", .description = "no memory" };
        return NULL;
    }
    pthread_mutex_init(&e->lock, NULL);
    if (type == MLX_GPU ? open_gpu(name, e, error) : open_cpu(name, e, error)) {
        free(e);
        return NULL;
    }
    atomic_store(&engines[type], e);
    return e;
}

mlxc_engine *mlxc_engine_of(const char *function, mlx_device_type type)
{
    ol_error error;
    mlxc_engine *e = atomic_load_explicit(&engines[type], memory_order_acquire);
    if (e)
        return e;
    pthread_mutex_lock(&opening);
    e = open_engine(type, &error);
    if (e)
        atomic_store(&engines[type], e);         /* the GPU may be the CPU's */
    pthread_mutex_unlock(&opening);
    if (!e)
        mlxc_report_core(function, &error);
    return e;
}

mlxc_engine *mlxc_engine_of_stream(const char *function, mlx_stream s)
{
    if (s.ctx)
        return mlxc_engine_of(function, *(mlx_device_type *)s.ctx);
    mlxc_report(function, "the stream is an empty handle; expected one of mlx_default_gpu_stream_new or mlx_default_cpu_stream_new");
    return NULL;
}

/* ---- Default device --------------------------------------------------------------------------------------------------- */

static mlx_device_type get_default_type(void)
{
    int type = atomic_load(&default_type);
    return type >= 0 ? (mlx_device_type)type : names_gpu(device_name()) ? MLX_GPU : MLX_CPU;
}

mlxc_engine *mlxc_engine_default(const char *function)
{
    return mlxc_engine_of(function, get_default_type());
}

static void *box_of(const char *function, mlx_device_type type)
{
    mlx_device_type *box = malloc(sizeof *box);
    if (box)
        *box = type;
    else
        mlxc_report_memory(function);
    return box;
}

mlx_device mlx_device_new_type(mlx_device_type type, int index)
{
    mlx_device none = { NULL };
    if (type != MLX_CPU && type != MLX_GPU)
        return mlxc_report(__func__, "%d is no type of device; expected MLX_CPU (0) or MLX_GPU (1)", (int)type), none;
    if (index != 0)
        return mlxc_report(__func__, "the index is %d; expected 0: which GPU that is, ONELAUNCH_DEVICE says", index), none;
    return (mlx_device){ box_of(__func__, type) };
}

int mlx_device_free(mlx_device d)
{
    free(d.ctx);
    return 0;
}

int mlx_get_default_device(mlx_device *d)
{
    if (!d)
        return mlxc_report_no_place(__func__);
    if (!d->ctx)
        return (d->ctx = box_of(__func__, get_default_type())) == NULL;
    *(mlx_device_type *)d->ctx = get_default_type();
    return 0;
}

int mlx_set_default_device(mlx_device d)
{
    if (!d.ctx)
        return mlxc_report(__func__, "the device is an empty handle; expected one of mlx_device_new_type or mlx_get_default_device");
    atomic_store(&default_type, (int)*(mlx_device_type *)d.ctx);
    return 0;
}

/* ---- Streams: boxes that say which engine ------------------------------------------------------------------------------- */

static mlx_stream open_stream(const char *function, mlx_device_type type)
{
    return (mlx_stream){ mlxc_engine_of(function, type) ? box_of(function, type) : NULL };
}

mlx_stream mlx_default_cpu_stream_new(void)
{
    return open_stream(__func__, MLX_CPU);
}

mlx_stream mlx_default_gpu_stream_new(void)
{
    return open_stream(__func__, MLX_GPU);
}

int mlx_stream_free(mlx_stream s)
{
    free(s.ctx);
    return 0;
}

int mlx_synchronize(mlx_stream s)
{
    ol_error error;
    mlxc_engine *e = mlxc_engine_of_stream(__func__, s);
    if (!e)
        return 1;
    return ol_stream_synchronize(e->device, e->stream, &error) == OL_OK ? 0 : mlxc_report_core(__func__, &error);
}
