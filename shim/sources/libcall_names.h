/*
 * Library functions that shim leaves alone, because they do not return as functions do, or
 * use their return address.
 */
#ifndef SHIM_LIBCALL_NAMES_H
#define SHIM_LIBCALL_NAMES_H

/* Why a call is not recorded. */
enum libcall_left {
	LIBCALL_TAKEN,
	LIBCALL_RETURNS,  /* it does not return once */
	LIBCALL_ADDRESS,  /* it uses its return address */
	LIBCALL_SHARED,	  /* the program compares the address in the slot */
	LIBCALL_MARKED,	  /* the function has marks, which record it */
	LIBCALL_UNBOUND,  /* the loader has not found it yet */
	LIBCALL_COMPILER, /* the compiler's own; not counted */
	LIBCALL_REASONS
};

enum libcall_left libcall_names_find(const char *name);

#endif
