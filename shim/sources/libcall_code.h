/*
 * The code of thunks of library calls, and code that uses GOT slots.  Depends on the
 * processor: arch/.../libcalls.c.
 */
#ifndef SHIM_LIBCALL_CODE_H
#define SHIM_LIBCALL_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIBCALL_THUNK_SIZE 32

/* What arch/.../returns.S gets from a thunk. */
struct libcall_target {
	uintptr_t function;
	uintptr_t target; /* the code that the call reaches */
};

/* Whether shim knows thunks of this processor. */
bool libcall_is_known(void);

/* A thunk, which jumps to where *@entry points, and tells this code *@target.  Both are less
 * than 2 GiB away. */
void libcall_put(unsigned char *thunk, const void *entry,
		 const struct libcall_target *target);

/* How an instruction uses a slot. */
enum slot_use {
	SLOT_NOT_USED,
	SLOT_CALLED,
	SLOT_LOADED, /* into a register; the instruction begins 3 bytes before @code */
	SLOT_READ, /* in another way */
};

/* The bytes that slot_use_at reads in front of, and from @code on. */
#define SLOT_USE_BEFORE 3
#define SLOT_USE_SIZE	4

/* Whether the bytes around @code, which are at @address, may be an instruction that uses the
 * slot *@slot. */
enum slot_use slot_use_at(const unsigned char *code, uintptr_t address,
			  uintptr_t *slot);

#endif
