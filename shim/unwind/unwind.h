/*
 * From a frame to its caller's, for any code that was compiled with tables for
 * exceptions (which is the default): no frame pointers, no symbols, no debug
 * information and no lock of the loader are needed.
 *
 * It may interrupt anything.  What is read is either known to be mapped for as
 * long as it is read (the thread's own stack, images that never go) or copied by
 * the kernel, which says no where it is not.  What it learns of a place in the
 * code it keeps in a table that is read and written without a lock.
 */
#ifndef SHIM_UNWIND_H
#define SHIM_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

/* By their DWARF numbers; 7 is the stack pointer, 16 the address. */
#define WALK_REGISTERS 17
#define WALK_SP 7
#define WALK_IP 16

struct thread;

struct unwind {
	uintptr_t registers[WALK_REGISTERS];
	uint32_t known;		/* which of them, as bits */
	bool is_exact;		/* the address is where it stands, not behind a call */
	bool is_last;		/* there is no caller: the code says so */
	uintptr_t stack_low, stack_high;	/* can be read as it is */
	uintptr_t function;	/* of the frame that unwind_step has left; 0: not known */
};

/* Begins with an interrupted place, a ucontext_t, of the calling thread; or with
 * the registers, known and is_exact that are set. */
void unwind_from_context(struct unwind *walk, const void *context,
		       struct thread *self);
void unwind_begin(struct unwind *walk, struct thread *self);

/* Goes to the caller.  False: there is none (is_last), or it is not known. */
bool unwind_step(struct unwind *walk);

/* Whether this frame is what a signal handler returns to. */
bool unwind_is_handlers(const struct unwind *walk);

/* Where the function begins, or the part of it, whose code this frame is in; 0:
 * not known. */
uintptr_t unwind_function(const struct unwind *walk);

/* The same of any code at @address, and its table of handlers, or 0. */
uintptr_t unwind_code(uintptr_t address, uintptr_t *lsda);

/*
 * The upper end of the frame that stands at @ip with this stack pointer, or 0;
 * read(@argument, number) tells what it has in the registers that functions keep, by
 * their DWARF numbers.
 */
uintptr_t unwind_end(uintptr_t ip, uintptr_t sp,
		   uintptr_t (*read)(void *argument, int number),
		   void *argument);

/* The program has closed an object: its addresses may be used again. */
void unwind_closed(void);

#endif
