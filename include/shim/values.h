/*
 * Values of the program: arguments, results and locals, as debug information
 * describes them.
 */
#ifndef SHIM_VALUES_H
#define SHIM_VALUES_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why a value cannot be had.  A value that can is never a guess. */
enum shim_unavailable {
	SHIM_AVAILABLE = 0,
	/* The function has none: it returns void, or the position is too high. */
	SHIM_UNAVAILABLE_NONE,
	/* Compiled without -g, stripped, or the file is not the one that was
	 * loaded. */
	SHIM_UNAVAILABLE_NO_DEBUG_INFORMATION,
	/* Its type or the way it is passed is not understood. */
	SHIM_UNAVAILABLE_NOT_UNDERSTOOD,
	/* The function does not use it, and it is nowhere any more. */
	SHIM_UNAVAILABLE_OPTIMIZED_OUT,
	/* It was there, and has been overwritten by now. */
	SHIM_UNAVAILABLE_CLOBBERED,
	/* The call was inlined: there is no place for it. */
	SHIM_UNAVAILABLE_INLINED,
	/* The function does not return here: it jumps to another one, or is
	 * unwound. */
	SHIM_UNAVAILABLE_NOT_RETURNED,
	/* shim cannot read this processor's code, or the code is not followed
	 * that far. */
	SHIM_UNAVAILABLE_CODE,
};

#ifdef __cplusplus
}
#endif
#endif
