/*
 * Finds the instructions that call the hooks, and knows which byte of theirs
 * to change so that they do not: any mix of old and new bytes is a valid
 * instruction of the same length, so a thread may run them meanwhile.
 *
 * Nothing is disassembled.  An instruction is taken for what it looks like if
 * it leads to a hook and lies in a function: four bytes of offset that do so by
 * chance are one in four thousand million.
 */
#ifndef SHIM_SCAN_H
#define SHIM_SCAN_H

#include "os/memory_view.h"
#include "unwind/fde_index.h"

#include <stdbool.h>
#include <stdint.h>

/* How the hooks are called: by an instruction or as the last thing a function
 * does, through a stub of the linker's or through the slot itself. */
enum scan_kind {
	SCAN_CALL,
	SCAN_CALL_SLOT,
	SCAN_JUMP,
	SCAN_JUMP_SLOT,
	SCAN_KINDS
};

struct scan_form {
	unsigned char on, off;	/* the first byte */
	unsigned char size;	/* of the instruction */
	bool jumps;		/* the function ends there: off returns */
};

extern const struct scan_form scan_forms[SCAN_KINDS];

#define SCAN_SLOTS_MAX 8
#define SCAN_STUBS_MAX 64

struct scan {
	uintptr_t slots[SCAN_SLOTS_MAX]; /* hold the addresses of the hooks */
	unsigned slot_count;
	uintptr_t stubs[SCAN_STUBS_MAX]; /* scan_stubs: jump through these */
	unsigned stub_count;
	uintptr_t stubs_low, stubs_high;
};

/* Notes the stubs in @text.  To be called for all texts of an image first. */
void scan_stubs(struct scan *scan, const struct view *text,
		struct frames *frames);

/* Calls @found for what looks like a call of a hook in @text, in ascending
 * order, until it returns false. */
void scan_calls(const struct scan *scan, const struct view *text,
		bool (*found)(uintptr_t address, enum scan_kind kind,
			      void *argument),
		void *argument);

#endif
