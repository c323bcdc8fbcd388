/*
 * Calls that have done a part of their work when a signal came, and return with
 * that: what is left to do of them.
 *
 * Left as they are: splice, tee, vmsplice and reads, for which a part is an
 * everyday answer that cannot be told from one that was cut.
 */
#ifndef SHIM_SYSCALL_RESTART_PART_H
#define SHIM_SYSCALL_RESTART_PART_H

#include "arch.h"

#include <stdbool.h>
#include <sys/socket.h>

struct part_rest {
	struct arch_call call;
	struct msghdr message;	/* which that may point to */
	unsigned *length;	/* what it does is added here; NULL: to what is done */
};

/* The call that does what comes behind the first @done bytes (or messages) of
 * @call, or some of it.  False: there is nothing, or it was no signal that cut
 * it. */
bool part_find_rest(const struct arch_call *call, long done,
		    struct part_rest *rest);

#endif
