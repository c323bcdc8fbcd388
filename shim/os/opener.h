/*
 * Files of the recording that this process may not open itself, because it has changed its
 * user or its root directory since it was started.  A process of profrun, the opener, opens
 * them (scripts/run/opener.c) and sends the descriptors.
 */
#ifndef SHIM_OPENER_H
#define SHIM_OPENER_H

#include <stdbool.h>
#include <stdint.h>

/* SHIM_OPENER: hexadecimal digits, which only processes of the run know.  The first ones are
 * the name of the opener's socket, an abstract one: OPENER_PREFIX and these. */
#define OPENER_PREFIX	   "shim-opener-"
#define OPENER_NAME_SIZE   16
#define OPENER_SECRET_SIZE 48

enum opener_what {
	OPENER_ANSWER = 1, /* nothing: is the opener there? */
	OPENER_TICK,	   /* opens the fine tick, to read it */
	OPENER_LIST,	   /* opens a list of functions, to read it */
	OPENER_LOG, /* opens the file for lines of processes without a recording */
	/* Those below are for the directory of the process that asks, PID.N. */
	OPENER_MAKE_DIRECTORY, /* also opens it (O_PATH) */
	OPENER_REMOVE_DIRECTORY,
	OPENER_CREATE,
	OPENER_OPEN, /* to read and write */
	OPENER_REMOVE,
};

/* Both names end in a NUL. */
struct opener_request {
	char secret[OPENER_SECRET_SIZE];
	uint32_t what; /* enum opener_what */
	char directory[28];
	char name[48];
};

/* The answer is an int32_t: 0, with a descriptor if the request opens something, or -errno. */

/* Sets the secret of the run's opener; "" if the run has no opener. */
void opener_use(const char *secret);

/*
 * Asks the opener to do what has just failed here.  @error is the error of that, a negative
 * errno or a reason of trust.h.  @directory is a path, of which the last part counts, or ""; @name may be
 * "".  Returns the descriptor, or 0; @error if there is no opener that could help; or -errno.
 */
int opener_help(int error, enum opener_what what, const char *directory,
		const char *name);

#endif
