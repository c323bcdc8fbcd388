/*
 * Calls that had done a part of their work when a signal came, and return that: the
 * call for the rest.
 *
 * Not continued: splice, tee, vmsplice and reads.  They often return a part, which
 * cannot be told from an interrupted call.
 */
#ifndef SHIM_SYSCALL_RESTART_PART_H
#define SHIM_SYSCALL_RESTART_PART_H

#include "arch.h"

#include <stdbool.h>
#include <sys/socket.h>

struct part_rest {
	struct arch_call call;
	struct msghdr message; /* @call may point to it */
	/* the result is added here; NULL: to the bytes done */
	unsigned *length;
};

/* Computes the call for the rest of @call behind the first @done bytes (or messages),
 * or for a part of that.  False if there is no rest, or no signal has cut the call. */
bool part_find_rest(const struct arch_call *call, long done,
		    struct part_rest *rest);

#endif
