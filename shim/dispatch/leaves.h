/*
 * The end of a function that calls the leave hook: the function returns, makes a tail
 * call, or is unwound.  For a return shim calls the leave hooks of profilers, for a
 * tail call their tailcall hooks.  For unwinding it calls only the leave hooks of
 * profilers that want it (shim_profiler_set_raw_leave_hooks).  Code of gcc calls the
 * leave hook during unwinding, code of clang does not.
 *
 * The code after the call of the hook nearly always decides.  shim reads that code once
 * for each call site.  Then a table has the sites that return: the hook runs after one
 * comparison, as if the program had called it.
 */
#ifndef SHIM_LEAVES_H
#define SHIM_LEAVES_H

/* Each may be NULL.  State lock held. */
struct leaves_hooks {
	void *leave;
	void *tail_call;
	void *unwinding;
};

/* Sets the hooks.  Returns the leave hook for the hook table: it sorts, and calls one
 * of them. */
void *leaves_sort_to(const struct leaves_hooks *hooks);

#endif
