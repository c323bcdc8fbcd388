/* The directory that a run is recorded in (see <shim/format.h>). */
#ifndef RUN_RECORDING_H
#define RUN_RECORDING_H

#include <limits.h>
#include <stdbool.h>

#define RECORDING_PATTERN "profrun.%n.%p"

/* The content of a recording. */
enum recording_content {
	RECORDING_NOTHING,  /* no process has loaded the library */
	RECORDING_NO_CALLS, /* the library was loaded, but not called */
	RECORDING_CALLS,    /* calls were recorded, or counted as lost */
};

/*
 * recording_pattern_error - check @pattern
 *
 * Returns NULL, or a message about the error.
 */
const char *recording_pattern_error(const char *pattern);

/*
 * recording_create - make the directory, mode 0700
 *
 * @pattern may hold %p (this process), %h (host), %r (rank), %n (the name of
 * @program) and %%.  Stores the absolute path in @path, or the one that failed.
 *
 * Returns 0, or an error for recording_error().
 */
enum recording_kind {
	RECORDING_FIXED =
		1, /* it must not exist; without this flag .1, .2 ... are tried */
	RECORDING_OF_RANK =
		2, /* its parent is the job's directory, and must be the user's */
};
int recording_create(const char *pattern, enum recording_kind kind,
		     const char *program, char path[PATH_MAX]);
const char *recording_error(int error);

/* recording_share - let the processes of the run share what they know about code, until
 * recording_unshare().  They do without if that fails. */
void recording_share(const char *path);
void recording_unshare(const char *path);

/* recording_remove - remove the directory again, if only a filter is in it */
void recording_remove(const char *path);

/* recording_delete - remove a recording of our own, with all that is in it */
void recording_delete(const char *path);

/* recording_close - record how the program ended */
void recording_close(const char *path, int wait_status);

/* recording_keep_jit_names - keep the names and lines of code that processes made (jit_map.h,
 * jit_dump.h) */
void recording_keep_jit_names(const char *path);

/*
 * recording_say_log - print the messages that the library logged in the processes
 *
 * With @has_report, without those whose reason the head of the report names.
 *
 * Returns whether a process could not be recorded at all, and logged the reason.
 */
bool recording_say_log(const char *path, bool has_report);

/* recording_is_alive - whether a process that records there has not ended */
bool recording_is_alive(const char *path);

/* recording_was_filtered - whether a process asked --filter about a function */
bool recording_was_filtered(const char *path);

/* Whether a further process could begin to record: 0, or an error for
 * recording_error(). */
int recording_try_room(const char *path);

enum recording_content recording_content(const char *path);

/* Whether a process has counted for monitor(3). */
bool recording_has_histograms(const char *path);

#endif
