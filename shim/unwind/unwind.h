/*
 * Unwinds from a frame to its caller's frame, in any code that was compiled with tables
 * for exceptions (the default).  There it needs no frame pointers, no symbols, no debug
 * information and no lock of the loader.  Where code has no tables, it may guess by the
 * frame pointer (frame_pointer.h).  libunwind may help or replace it (second.h).
 *
 * All functions are async.  They read memory directly only if it stays mapped (the
 * thread's own stack, images that are never unloaded).  The kernel copies other memory,
 * and reports memory that is not mapped.  The rules for an address are cached in a
 * table that is read and written without a lock.
 */
#ifndef SHIM_UNWIND_H
#define SHIM_UNWIND_H

#include "runtime/subscribe.h"

#include <stdbool.h>
#include <stdint.h>

/* Registers by their DWARF numbers; 7 is the stack pointer, 16 the instruction
 * pointer. */
#define WALK_REGISTERS 17
#define WALK_SP	       7
#define WALK_IP	       16

struct thread;

struct unwind {
	uintptr_t registers[WALK_REGISTERS];
	uint32_t known; /* the known registers, as bits */
	bool is_exact; /* the address is an interrupted one, no return address */
	bool is_last;  /* the tables say that there is no caller */
	bool may_guess;	  /* by frame_pointer.h, where there are no tables */
	bool is_guess;	  /* the last step was such a guess */
	uint8_t switches; /* of the stack, which frame_pointer.h has followed */
	uintptr_t chained_ip; /* to which a frame pointer has led, or 0 */
	uintptr_t stack_low, stack_high; /* memory that can be read directly */
	uintptr_t function; /* of the frame that unwind_step left; 0: unknown */
};

/* A thread was interrupted at *@ip.  If this is a copy of other code, a subscriber stores the
 * addresses that *@ip and *@sp would have in that code.  Async. */
TOPIC(unwind_interrupted, uintptr_t *ip, uintptr_t *sp);

/* Where the thread of a ucontext_t was interrupted: in a copy, the original address. */
uintptr_t unwind_interrupted_ip(const void *context);

/* Begin a walk of the calling thread: at an interrupted context (a ucontext_t); or with
 * the fields registers, known and is_exact, which the caller has set. */
void unwind_from_context(struct unwind *walk, const void *context,
			 struct thread *self);
void unwind_begin(struct unwind *walk, struct thread *self);

/* Finds the bounds of the stack that the calling thread was created with, unless they are
 * known, if @sp is on it.  Tries a few times: the thread may change to another stack
 * meanwhile. */
void unwind_find_own_stack(struct thread *self, uintptr_t sp);

/* Goes to the caller's frame.  False if the frame has no caller (is_last), or if the
 * caller is unknown. */
bool unwind_step(struct unwind *walk);

/* Reads a word of memory; false if it cannot be read. */
bool unwind_read(const struct unwind *walk, uintptr_t at, uintptr_t *value);

/* Whether the frame is the kernel's, to which a signal handler returns. */
bool unwind_is_signal_frame(const struct unwind *walk);

/* The start of the function of this frame, or of the part that contains the code; 0 if
 * unknown. */
uintptr_t unwind_function(const struct unwind *walk);

/* The start of the function, or of its part, that contains @address, which may be any
 * code.  *@lsda receives the function's table of handlers, or 0. */
uintptr_t unwind_code(uintptr_t address, uintptr_t *lsda);

/*
 * The upper end of the frame at @ip with the stack pointer @sp, or 0.  read(@argument,
 * number) returns a register that functions preserve, by its DWARF number.
 */
uintptr_t unwind_end(uintptr_t ip, uintptr_t sp,
		     uintptr_t (*read)(void *argument, int number),
		     void *argument);

/* The program has closed an object: its addresses may be reused. */
void unwind_closed(void);

#endif
