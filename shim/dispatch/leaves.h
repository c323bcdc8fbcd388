/*
 * How a function ends that calls the leave hook: it returns, it makes a tail call, or
 * it is unwound.  A return calls the leave hooks of profilers, a tail call their
 * tailcall hooks.  Unwinding calls only leave hooks of profilers that want it
 * (shim_profiler_set_raw_leave_hooks): code of gcc calls the leave hook then, code of
 * clang does not.
 *
 * The code behind the call of the hook nearly always decides.  It is read once for
 * each call site.  From then on a table has the sites that return: the hook runs
 * after one comparison, as if the program had called it.
 */
#ifndef SHIM_LEAVES_H
#define SHIM_LEAVES_H

/* Each may be NULL.  State lock held. */
struct leaves_hooks {
	void *leave;
	void *tail_call;
	void *unwinding;
};

/* Sets the hooks; returns the leave hook for the hook table, which calls them. */
void *leaves_sort_to(const struct leaves_hooks *hooks);

#endif
