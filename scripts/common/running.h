/* Which recording shim makes of a process that runs. */
#ifndef COMMON_RUNNING_H
#define COMMON_RUNNING_H

#include <limits.h>
#include <stdbool.h>

#include <shim/format.h>

/*
 * running_recording - fill @directory with the process's in its recording, DIR/PID.N
 *
 * Returns false if shim does not record @pid, or its mappings cannot be read.
 */
bool running_recording(long pid, char directory[PATH_MAX]);

/* Reads `meta` of @pid at @path; false: it is not there, or of another process. */
bool running_meta(const char *path, long pid, struct shim_meta *meta);

#endif
