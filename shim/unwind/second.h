/*
 * The second opinion: libunwind.  libshim-unwind.so (unwind/libunwind) has it, and is
 * loaded only if a profiler asks for it, in a namespace of its own.
 *
 * libunwind works on a copy of the registers and calls shim for memory and tables.  So it
 * needs no lock of the loader, opens no file and no pipe, and no read can fault.  It
 * allocates from pools of its own, which use mmap.  One thread at a time uses it.
 */
#ifndef SHIM_SECOND_H
#define SHIM_SECOND_H

#include "unwind/unwind.h"

#define SECOND_SYMBOL  "shim_second_unwinder"
#define SECOND_VERSION 1

/* The index for exceptions (.eh_frame_hdr) of the image that covers an address. */
struct second_tables {
	uintptr_t start, end; /* of the image */
	uintptr_t index;
};

/* What libshim.so does for the library.  All are async. */
struct second_calls {
	/* Reads a word of memory; false if it cannot be read. */
	bool (*read)(const struct unwind *walk, uintptr_t at, uintptr_t *value);
	/* False if there are no tables. */
	bool (*find_tables)(uintptr_t address, struct second_tables *tables);
	/* Whether the frame is the kernel's, to which a signal handler returns. */
	bool (*is_signal_frame)(const struct unwind *walk);
};

/* What libshim-unwind.so does. */
struct second_unwinder {
	uint32_t version;
	/* Called once, before the first step; allocates with malloc of its own namespace.
	 * @calls must stay valid.  False without memory. */
	bool (*start)(const struct second_calls *calls);
	/* As unwind_step, for a frame that has tables.  Async, for one thread at a time. */
	bool (*step)(struct unwind *walk);
	/* Addresses may be reused: drops stored tables.  As @step. */
	void (*forget)(void);
};

/* enum shim_unwinder. */
uint32_t second_wanted(void);

/* Opens the library if a profiler asked for it.  Takes the loader's lock; the caller must
 * not hold the state lock.  May be called again. */
void second_start(void);

/* As unwind_step, by tables only; false also if the library cannot be used now.  Sets
 * walk->function.  Async. */
bool second_step(struct unwind *walk);

/* The program has closed an object: its addresses may be reused. */
void second_closed(void);

/* Called in a forked child. */
void second_forked(void);

#endif
