/*
 * Finds the instructions that call the hooks, and the byte that switches each of them
 * off.  Only that byte changes.  Both values make a valid instruction of the same
 * length, because a thread may run it meanwhile.
 *
 * shim does not disassemble the code.  It regards bytes as a call if they look like a
 * call, lead to a hook and lie in a function.  By chance, one in four thousand million
 * offsets of four bytes leads to a hook.
 */
#ifndef SHIM_SCAN_H
#define SHIM_SCAN_H

#include "os/memory_view.h"
#include "unwind/fde_index.h"

#include <stdbool.h>
#include <stdint.h>

/* The form of a call of a hook: a call, or a jump at the function's end; through a stub
 * of the linker, or through the GOT slot itself. */
enum scan_kind {
	SCAN_CALL,
	SCAN_CALL_SLOT,
	SCAN_JUMP,
	SCAN_JUMP_SLOT,
	SCAN_KINDS
};

struct scan_form {
	unsigned char on, off; /* the first byte */
	unsigned char size;    /* of the instruction */
	bool jumps;	       /* the function ends there: off is a return */
};

extern const struct scan_form scan_forms[SCAN_KINDS];

#define SCAN_SLOTS_MAX 8
#define SCAN_STUBS_MAX 64

struct scan {
	uintptr_t slots[SCAN_SLOTS_MAX]; /* GOT slots of the hooks */
	unsigned slot_count;
	uintptr_t stubs[SCAN_STUBS_MAX]; /* stubs that jump through @slots */
	unsigned stub_count;
	uintptr_t stubs_low, stubs_high;
};

/* Stores the stubs in @text.  The caller calls it for all texts of an image before
 * scan_calls. */
void scan_stubs(struct scan *scan, const struct view *text,
		struct frames *frames);

/* Calls @found for each instruction of @text that looks like a call of a hook, in
 * ascending order, until @found returns false. */
void scan_calls(const struct scan *scan, const struct view *text,
		bool (*found)(uintptr_t address, enum scan_kind kind,
			      void *argument),
		void *argument);

/* Whether the code behind a call, from @start on, reads the return address that the call has
 * left below the stack pointer (clang's -mspeculative-load-hardening).  Then nothing can
 * replace the call.  @end: of its function. */
bool scan_reads_return(const struct view *text, uintptr_t start, uintptr_t end);

#endif
