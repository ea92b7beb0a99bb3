/* A small file that is written whole or not at all: under a temporary name beside its own, brought to disk, then renamed. A full
 * disk, a signal or a power cut leaves the file that was there, or none. What is no regular file (a pipe, /dev/null) is
 * written to as it is; a symbolic link stays, and what it names is replaced; a file that is replaced hands on its
 * permissions. (safetensors_write.c does so for tensors, with signals held back, since those take long.) */
#ifndef PROVE_WHOLE_FILE_H
#define PROVE_WHOLE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* False, with a message and errno's reason, where it failed; then there is no temporary file either. */
bool whole_file_write(const char *command, const char *path, const void *data, size_t n_bytes);

/* Could it be written now? To be asked before an hour of work. False with a message. */
bool whole_file_writable(const char *command, const char *path);

#endif
