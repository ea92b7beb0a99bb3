/* Destructors of the client's, called once what they belong to is gone. */
#ifndef MLXC_LAST_CALL_H
#define MLXC_LAST_CALL_H

/* Frees the object, which is from malloc and as large as three pointers, and calls dtor(data), where there is a dtor: at once, unless many
 * such calls are under way on this thread, each made by what the one before it released. Then the last of these makes it, when its
 * own call has returned: a chain of objects, each released by the destructor of the one before, has any length and takes no more stack. */
void mlxc_last_call(void *object, void (*dtor)(void *), void *data);

#endif
