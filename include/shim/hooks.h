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

/*
 * shim_calls_stop - from now on no hook is called
 *
 * The instructions that call the hooks are changed in place, one byte each, in
 * everything that is loaded and while other threads run it; a call that is off
 * costs next to nothing.  Where the program's code may not be written the call
 * is made and leads nowhere.  A hook that has begun goes on.
 *
 * Calls that begin or end while stopped leave no trace: what was open may have
 * ended, and what ends later may never have begun.  Stopping twice is stopping.
 *
 * Returns SHIM_OK; SHIM_E_FAIL if shim does not run here, or the program has
 * forbidden itself the system calls this takes.
 *
 * Contract: async; blocks signals and takes the lock of shim/state.h.  The
 * first time takes some 3 ms for each MB of code that calls hooks: it is looked
 * through, and the process gets its own copy of the pages that change.  Later it
 * is 15 ns a call site.
 */
SHIM_API enum shim_result shim_calls_stop(void) SHIM_ASYNC;

/*
 * shim_calls_start - hooks are called again
 *
 * Undoes shim_calls_stop, however often that was called; does nothing without
 * one.  Results and contract as there.
 */
SHIM_API enum shim_result shim_calls_start(void) SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
