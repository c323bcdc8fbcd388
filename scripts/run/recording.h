/* The directory that a run is recorded in (see <shim/format.h>). */
#ifndef RUN_RECORDING_H
#define RUN_RECORDING_H

#include <limits.h>
#include <stdbool.h>

#define RECORDING_PATTERN "profrun.%n.%p"

/* What has been recorded. */
enum recording_content {
	RECORDING_NOTHING,	/* the library has not been in any process */
	RECORDING_NO_CALLS,	/* it was there, but nothing called it */
	RECORDING_CALLS,	/* there are calls, or lost ones */
};

/*
 * recording_pattern_error - what is wrong with @pattern
 *
 * Returns NULL, or a message.
 */
const char *recording_pattern_error(const char *pattern);

/*
 * recording_create - make the directory, mode 0700
 *
 * @pattern may hold %p (this process), %h (host), %r (rank), %n (the name of
 * @program) and %%.  With @is_fixed the directory must not be there yet;
 * otherwise .1, .2 and so on are tried after it.  Stores the absolute path in
 * @path, or the one that failed.
 *
 * Returns 0 or -errno.
 */
int recording_create(const char *pattern, bool is_fixed, const char *program,
		     char path[PATH_MAX]);

/* recording_remove - remove the directory again, if only a filter is in it */
void recording_remove(const char *path);

/* recording_close - note in it that and how the program has ended */
void recording_close(const char *path, int wait_status);

/* recording_say_log - say what the library had to say in the processes */
void recording_say_log(const char *path);

enum recording_content recording_content(const char *path);

/* Whether some process has counted for monitor(3). */
bool recording_has_histograms(const char *path);

#endif
