/*
 * What happens on enter and leave, for the profilers there are.
 *
 * With one fast profiler that wants every function the table points at its
 * hooks, and nothing of ours is in the way.  Otherwise a plan is made: a list of
 * hooks, which the functions in plan.c (and behind entry.S, dispatch/slow_hook.c) run.
 * A plan is replaced whole; who runs one says so in thread->dispatching.
 */
#ifndef SHIM_PLAN_H
#define SHIM_PLAN_H

#include "dispatch/filter_cache.h"
#include "runtime/hook.h"

#include <stdbool.h>

struct plan {
	/* The hooks of the only profiler, if they are slow; for entry.S. */
	void *single[3];
	const struct plan_entry *single_entry;
	/* If there are only fast ones that want everything: the hooks, then
	 * NULL; for entry.S, too. */
	void **chains[3];
	struct plan *next;	/* an older one that is out of use */
	size_t size;
	uint32_t count, room;
	bool decides;		/* someone has a filter or mapper */
	bool slow;		/* someone needs a frame */
	bool inspects;		/* ... with the registers, or a context */
	bool asks;		/* a fast one does, of some calls */
	bool tracks;		/* someone asks how frames are left */
	bool tail_calls;	/* someone has a hook for them */
	bool sorts;		/* leaves are sorted (leaves.h), if there are ... */
	bool sorts_landed;	/* ... and, only then, when something was unwound */
	struct plan_entry entries[];
};

/* To be read only by who has said so in thread->dispatching or thread->frame,
 * or has the state lock: otherwise it may go. */
extern const struct plan *plan_current;

/* Whether the plan there is tracks.  Async. */
bool plan_is_tracking(void);

/* Whether somebody is told of functions by their addresses: hooks of modules, mappers
 * and filters.  Then what is opened is looked at at once.  Async. */
bool plan_watches_images(void);

/* A landing pad is about to run.  Tells whether anybody is interested in that.
 * Async; takes the state lock the first time. */
bool plan_landed(void);

/* After anything changed that a plan is made of.  State lock held. */
void plan_update(void);
/* The same for who does not hold it; nothing before shim runs. */
void plan_changed(void);
/* Waits until every other thread was seen outside of plans (thread_wait). */
bool plan_wait(uint32_t timeout_ms);
/* Opens the decoder if the plan reads code (code_start); where dlopen may be called.
 */
void plan_start_code(void);
/* No hooks of modules any more. */
void plan_finish(void);
/* In a forked child: the parent may have been about to change something, and
 * whether it was paused is what @paused says.  State lock held. */
void plan_forked(bool paused);
/* @handle is going; its slots are free. */
void plan_forget(struct shim_profiler_handle *handle);
/* All hooks off, and on again (ctl stop, shim_hooks_disable).  State lock held. */
void plan_pause(bool paused);

/* Runs the plan there is; what the table points at comes here. */
void plan_dispatch(const struct plan_call *call);
/* Calls everybody's hook. */
void plan_run(const struct plan *plan, struct thread *self,
	      const struct plan_call *call);

/* A call that entry.S leaves to C. */
void plan_general(shim_function function, const void *site, uintptr_t frame,
		  uint32_t event, uintptr_t return_address);

#endif
