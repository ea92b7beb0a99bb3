/* The error handler. It is the process's, so a mutex guards which one it is, and a count of the calls under way says when its data may
 * go. It runs with no lock held: it may set another handler, call functions that fail, or leave by longjmp.
 *
 * A handler that makes an error each time it is told of one would not end: nested calls past a depth are dropped. */
#include "report.h"

#include "nesting.h"

#include "mlx/c/error.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NESTED 8

typedef struct handler_record {
    mlx_error_handler_func function;
    void *data;
    void (*dtor)(void *);
    size_t references;                 /* one while it is current, one for each call under way */
} handler_record;

static void print_and_exit(const char *message, void *data)
{
    (void)data;
    printf("MLX error: %s\n", message);
    exit(-1);
}

static handler_record default_handler = { .function = print_and_exit, .references = 1 };
static handler_record *current = &default_handler;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local mlxc_nesting nesting;
static _Thread_local char last_message[MLXC_MAX_MESSAGE];

/* The lock is held; the caller frees what is returned, outside of it. */
static handler_record *drop(handler_record *h)
{
    return --h->references == 0 && h != &default_handler ? h : NULL;
}

static void finish(handler_record *h)
{
    if (!h)
        return;
    if (h->dtor)
        h->dtor(h->data);
    free(h);
}

static void call_handler(const char *message)
{
    if (!mlxc_nesting_enter(&nesting, MLXC_FRAME, MAX_NESTED))
        return;
    pthread_mutex_lock(&lock);
    handler_record *h = current;
    h->references++;
    pthread_mutex_unlock(&lock);
    h->function(message, h->data);
    mlxc_nesting_leave(&nesting, MLXC_FRAME);
    pthread_mutex_lock(&lock);
    h = drop(h);
    pthread_mutex_unlock(&lock);
    finish(h);
}

void mlx_set_error_handler(mlx_error_handler_func function, void *data, void (*dtor)(void *))
{
    handler_record *next = &default_handler;
    if (function) {
        next = malloc(sizeof *next);
        if (!next) {                   /* the handler stays as it is, and what was handed over is not kept */
            mlxc_report_memory("mlx_set_error_handler");
            if (dtor)
                dtor(data);
            return;
        }
        *next = (handler_record){ function, data, dtor, 0 };
    } else if (dtor) {
        dtor(data);                    /* the default handler has no use for it */
    }
    pthread_mutex_lock(&lock);
    next->references++;
    handler_record *last = drop(current);
    current = next;
    pthread_mutex_unlock(&lock);
    finish(last);
}

int mlxc_report(const char *function, const char *format, ...)
{
    char message[MLXC_MAX_MESSAGE] = "";
    int n = snprintf(message, sizeof message, "%s: ", function);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + n, sizeof message - (size_t)n, format, arguments);
    va_end(arguments);
    call_handler(message);
    memcpy(last_message, message, sizeof message);       /* behind those that the handler itself caused */
    return 1;
}

char *mlxc_last_message(void)
{
    return last_message;
}

/* A composite has the name of the function that it was made for, which is not said twice. */
int mlxc_report_core(const char *function, const ol_error *error)
{
    const char *name = strstr(error->operation, function);
    if (name && strcmp(name, function) == 0)
        return mlxc_report(function, "%s", error->description);
    return mlxc_report(function, "%s: %s", error->operation, error->description);
}

int mlxc_report_memory(const char *function)
{
    return mlxc_report(function, "no memory");
}

int mlxc_report_no_place(const char *function)
{
    return mlxc_report(function, "the place for the result is NULL; expected a pointer to one");
}
