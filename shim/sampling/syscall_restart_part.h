/*
 * System calls that had done a part of their work when a signal came: finds the
 * arguments of the call that does the rest.
 *
 * splice, tee, vmsplice and reads are not continued.  They often return a part without
 * an interruption, and the two cases look the same.
 */
#ifndef SHIM_SYSCALL_RESTART_PART_H
#define SHIM_SYSCALL_RESTART_PART_H

#include "arch.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#ifndef SYS_io_uring_enter
#define SYS_io_uring_enter 426
#endif

/* Flags of io_uring_enter, from <linux/io_uring.h>, which is newer. */
#define RING_WAITS	1
#define RING_HAS_STRUCT 8  /* the fifth argument is a struct ring_wait */
#define RING_HAS_INDEX	64 /* or an index of those that the kernel knows */

struct part_rest {
	struct arch_call call;
	struct msghdr message; /* @call may point to it */
	/* receives the sum of the lengths; NULL: the result of the program's call
	 * does */
	unsigned *length;
};

/* Computes the call for the rest of @call after the first @done bytes (or messages), or
 * for a part of the rest.  False if @call has no rest, or if no signal has cut it. */
bool part_find_rest(const struct arch_call *call, long done,
		    struct part_rest *rest);

#endif
