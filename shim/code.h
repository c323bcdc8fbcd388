/*
 * What the program's code does after a leave hook, read from the code itself.
 */
#ifndef SHIM_CODE_H
#define SHIM_CODE_H

#include <shim/shim.h>

enum code_leave {
	CODE_RETURNS,		/* also when it is not known */
	CODE_TAIL_CALLS,	/* it jumps to another function */
	CODE_UNWINDS,		/* it resumes an exception */
};

/*
 * What happens at @return_address, where a leave hook of @function returns to.
 * *@target gets the function a tail call jumps to, or 0.  Decided once per
 * address and remembered.  Async.
 */
enum code_leave code_leave_kind(uintptr_t return_address,
				shim_function function, uintptr_t *target);

#endif
