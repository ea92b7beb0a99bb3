/* The client's destructors, at most so many within each other. What is put off is kept in the memory of the object that is gone, so that
 * nothing can fail. A destructor that is left by longjmp leaves what waits to the next one on this thread. */
#include "last_call.h"

#include "nesting.h"

#include <stdlib.h>

#define MAX_NESTED 32

typedef struct waiting_call {
    struct waiting_call *next;
    void (*dtor)(void *);
    void *data;
} waiting_call;

static _Thread_local mlxc_nesting nesting;
static _Thread_local waiting_call *waiting;

void mlxc_last_call(void *object, void (*dtor)(void *), void *data)
{
    waiting_call *c = object;
    if (!dtor) {
        free(object);
        return;
    }
    *c = (waiting_call){ waiting, dtor, data };
    waiting = c;
    if (!mlxc_nesting_enter(&nesting, MLXC_FRAME, MAX_NESTED))
        return;
    while (waiting) {
        waiting_call now = *waiting;
        free(waiting);
        waiting = now.next;
        now.dtor(now.data);
    }
    mlxc_nesting_leave(&nesting, MLXC_FRAME);
}
