/* Finds the recording of a running process. */
#ifndef COMMON_RUNNING_H
#define COMMON_RUNNING_H

#include <limits.h>
#include <stdbool.h>

#include <shim/format.h>

/*
 * running_own_id - the id that a process or thread has in its own pid namespace
 *
 * Recordings have that one.  @id is the id here; it is returned if the process has ended.
 */
long running_own_id(long id);

/*
 * running_recording - store the directory of the process in its recording, DIR/PID.N
 *
 * Returns false if shim does not record @pid, or its mappings cannot be read.
 */
bool running_recording(long pid, char directory[PATH_MAX]);

/* Reads the `meta` of @pid, an id here, at @path.  False if it is missing or belongs to another
 * process. */
bool running_meta(const char *path, long pid, struct shim_meta *meta);

#endif
