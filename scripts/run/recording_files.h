/* Reads the files of a recording, for the files recording*.c. */
#ifndef RUN_RECORDING_FILES_H
#define RUN_RECORDING_FILES_H

#include <shim/format.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* recording_open_file - open a regular file; -1 with errno */
int recording_open_file(int directory, const char *name);

/* Returns how many bytes were read; fewer than @size at the end or on error. */
size_t recording_read_at(int fd, void *memory, size_t size, uint64_t offset);

typedef bool (*visit_process)(int directory, const char *name, void *data);

/* Calls @visit for the directory of every process, in order, until it returns false.
 * Returns the number of directories, or -1. */
int recording_each_process(const char *path, visit_process visit, void *data);

/* False if the process has none, or one that cannot be read. */
bool recording_read_meta(int directory, struct shim_meta *meta);

#endif
