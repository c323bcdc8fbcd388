/*
 * Ends of functions whose marks have only entries.  At the entry, arch_returned takes the
 * place of the return address, and calls the leave hook when the function returns.
 *
 * The real return address is in the mirror: memory at a fixed distance from each stack,
 * with 16 bytes for every word of the stack.  The place follows from the address of the
 * stack's word alone, so nothing has to be repaired after a jump, an exception, a switch
 * of stacks or of threads, or a fork; and DWARF can express it: every unwinder finds the
 * real address by the unwind table of arch_returned, and exceptions pass it.
 *
 * Copies of a stack's content to another time are the limit: a program that saves a part
 * of its stack, runs other functions there, and puts the part back, finds the other
 * functions' return addresses.
 */
#ifndef SHIM_RETURNS_H
#define SHIM_RETURNS_H

#include <stdbool.h>
#include <stdint.h>

struct plan_route;

/* What returns_open tells arch/.../returns.S. */
enum returns_answer {
	RETURNS_SKIP, /* the call is not recorded, and counted as lost */
	RETURNS_REPLACE,
	RETURNS_ENTER_ONLY, /* the system keeps a copy of return addresses (CET) */
};

/* Makes the mirror of @slot, the address of a return address, usable by the calling
 * thread.  Async. */
enum returns_answer returns_open(uintptr_t slot);

/* Whether a function has ever returned to arch_returned.  Async. */
bool returns_are_used(void);

/* Whether the system lets functions return to another address.  Says it once if not. */
bool returns_are_possible(void);

/* Lets the functions that are entered and left from now on call hooks of @route. */
void returns_route(const struct plan_route *route);

/* The code that thunks of library calls jump to for @route; and those of entries, which push
 * r11. */
void (*returns_entry(const struct plan_route *route))(void);
void (*returns_entry_kept(const struct plan_route *route))(void);
/* The code that thunks of entries jump to that no compiler has marked, and those of calls of
 * __fentry__. */
uintptr_t returns_entry_unmarked(void);
/* The code that thunks of calls of mcount jump to. */
uintptr_t returns_entry_mcount(void);
/* The code that they jump to for mcount's work, with r11 pushed; and those of __fentry__. */
uintptr_t returns_count_of_mcount(void);
uintptr_t returns_count_of_fentry(void);

#endif
