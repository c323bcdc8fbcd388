/* Finds the frames of a thread with libunwind, from copied registers and memory. */
#ifndef PROCESS_UNWIND_H
#define PROCESS_UNWIND_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "process/space.h"

struct unwinder;

/* The source of a stack: the copy of its bytes; memory outside the copy is read from
 * the space. */
struct unwind_from {
	const struct user_regs_struct *registers;
	uint64_t stack;
	size_t stack_size;
	const unsigned char *bytes;
};

/* This bit is set in the address of a frame that the kernel made for a signal
 * handler. */
#define UNWIND_SIGNAL ((uint64_t)1 << 63)

/* The most frames of a stack; further frames are left out. */
#define UNWIND_DEPTH_MAX 65536u

/* Dies without memory. */
struct unwinder *unwinder_open(struct space *space);
/* Called when modules have changed. */
void unwinder_forget(struct unwinder *unwinder);

/*
 * unwinder_frames - the frames of a thread, the innermost first
 *
 * Stores an address in each frame's function: for callers, the last byte before the
 * return address, which belongs to the call.  @addresses has UNWIND_DEPTH_MAX elements.
 * Returns the number of frames.
 */
uint32_t unwinder_frames(struct unwinder *unwinder,
			 const struct unwind_from *from, uint64_t *addresses);

#endif
