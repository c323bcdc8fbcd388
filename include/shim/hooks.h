/*
 * Hooks: functions of a profiler that are called for every call the program
 * makes.  They run on the program's stack, at any place in it, with any of its
 * locks held: see <shim/banned.h> for what they may not touch.
 */
#ifndef SHIM_HOOKS_H
#define SHIM_HOOKS_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A hook of the fast path gets the function and the address its caller will be
 * returned to.  Nothing of ours is on the stack: __builtin_dwarf_cfa() in it is
 * the program's stack pointer.  It must use general registers only.
 */
typedef void (*shim_function_hook)(shim_function function, const void *site);

/*
 * shim_set_enter_leave_function_hooks3 - who is called on every call
 *
 * At least one of @enter, @leave and @tailcall must be there; NULL means that
 * event is not wanted.  The last call for a handle wins as a whole.  Rows E-22
 * to E-25.
 *
 * Returns SHIM_OK; SHIM_E_ARGUMENT if all are NULL or @handle is; SHIM_E_TOO_LATE
 * after initialization; SHIM_E_IN_USE if another handle has hooks (for now there
 * is one).
 *
 * Contract: init.
 */
SHIM_API enum shim_result
shim_set_enter_leave_function_hooks3(struct shim_handle *handle,
				     shim_function_hook enter,
				     shim_function_hook leave,
				     shim_function_hook tailcall) SHIM_INIT;

#ifdef __cplusplus
}
#endif
#endif
