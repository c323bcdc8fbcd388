/*
 * How a function ends that calls the leave hook: it returns, it calls another one
 * in its place (a tail call), or it is unwound.  The leave hooks of profilers are
 * called for the first, their tail-call hooks for the second, and for the third
 * only what wants it (shim_profiler_set_raw_leave_hooks): gcc calls the hook then, clang
 * does not.
 *
 * Nearly all of it is in the code behind the call of the hook.  It is read once
 * for each place, and then a table in front says that the place returns: the hook
 * follows after a comparison, as if the program had called it.
 */
#ifndef SHIM_LEAVES_H
#define SHIM_LEAVES_H

/* Each may be NULL.  State lock held. */
struct leaves_hooks {
	void *leave;
	void *tail_call;
	void *unwinding;
};

/* What the table leads to so that these are called. */
void *leaves_sort_to(const struct leaves_hooks *hooks);

#endif
