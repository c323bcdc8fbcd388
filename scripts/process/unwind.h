/* The frames of a thread by libunwind, of registers and memory that were copied. */
#ifndef PROCESS_UNWIND_H
#define PROCESS_UNWIND_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "process/space.h"

struct unwinder;

/* What a stack is read from: its copy, and else the space. */
struct unwind_from {
	const struct user_regs_struct *registers;
	uint64_t stack;
	size_t stack_size;
	const unsigned char *bytes;
};

/* Set in an address: the kernel made the frame, for a signal handler. */
#define UNWIND_SIGNAL ((uint64_t)1 << 63)

/* A frame that has more frames than these ends there. */
#define UNWIND_DEPTH_MAX 65536u

/* Dies if there is no memory. */
struct unwinder *unwinder_open(struct space *space);
/* Modules have changed. */
void unwinder_forget(struct unwinder *unwinder);

/*
 * unwinder_frames - the frames of a thread, the innermost first
 *
 * Gives for each an instruction that belongs to the call: of a caller, the last byte
 * before its return address.  Returns how many of @addresses, which have
 * UNWIND_DEPTH_MAX elements, were filled.
 */
uint32_t unwinder_frames(struct unwinder *unwinder,
			 const struct unwind_from *from, uint64_t *addresses);

#endif
