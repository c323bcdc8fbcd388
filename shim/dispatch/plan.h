/*
 * The plan: the hooks that run on enter and leave.
 *
 * If there is one fast profiler and it wants every function, the hook table points at
 * its hooks, and no code of shim runs for a call.  Otherwise a plan lists the hooks,
 * and dispatch.c, slow_hook.c and arch/.../dispatch.S run it.  shim replaces a plan as
 * a whole.  A thread that runs a plan counts that in thread->dispatching.
 */
#ifndef SHIM_PLAN_H
#define SHIM_PLAN_H

#include "dispatch/filter_cache.h"
#include "runtime/hook.h"
#include "runtime/subscribe.h"

#include <shim/hooks.h>
#include <stdbool.h>

struct plan {
	/* For dispatch.S: the hooks of the only profiler, if they are slow. */
	void *single[3];
	const struct plan_entry *single_entry;
	/* For dispatch.S: all hooks and a NULL, if they are fast and want every
	 * function. */
	void **chains[3];
	struct plan *next; /* an older plan that is not freed yet */
	size_t size;
	uint32_t count, room;
	bool decides;	   /* a profiler has a filter or mapper */
	bool slow;	   /* a hook needs a frame */
	bool inspects;	   /* a hook needs the registers, or a context */
	bool has_deferred; /* a fast hook has a deferred hook */
	bool tracks;	   /* a profiler wants the exits of frames */
	bool tail_calls;   /* a profiler has a tailcall hook */
	bool sorts;	   /* leaves are sorted (leaves.h) */
	bool sorts_landed; /* leaves are sorted after the first unwinding */
	struct plan_entry entries[];
};

/* Only for a thread that has set thread->dispatching or thread->frame, or that holds
 * the state lock: otherwise the plan may be freed. */
extern const struct plan *plan_current;

/* Whether the current plan tracks.  Async. */
bool plan_is_tracking(void);

/* Whether hooks of modules, mappers or filters get addresses of functions.  Then shim
 * scans an image as soon as it is loaded.  Async. */
bool plan_watches_images(void);

/* A landing pad is about to run.  Returns whether the plan needs landing pads.  Async;
 * takes the state lock the first time. */
bool plan_landed(void);

/* Makes a new plan after the settings of a profiler have changed.  State lock held. */
void plan_update(void);
/* Takes the lock and makes a new plan.  Has no effect before shim runs. */
void plan_changed(void);
/* Waits until every other thread was outside of plans once (thread_wait). */
bool plan_wait(uint32_t timeout_ms);
/* Opens the decoder if the plan reads code (code_start).  May call dlopen. */
void plan_start_code(void);
/* Removes the hooks of modules. */
void plan_finish(void);
/* In a forked child: points the table again, because the parent may have been changing it.
 * @paused: hooks are disabled.  State lock held. */
void plan_forked(bool paused);
/* Releases the slots of @handle, which is being removed. */
void plan_forget(struct shim_profiler_handle *handle);
/* Whether only @handle has hooks, and no profiler wants the exits of frames.  State
 * lock held. */
bool plan_is_only(const struct shim_profiler_handle *handle);
/* Switches all hooks off or on (ctl stop, shim_hooks_disable).  State lock held. */
void plan_pause(bool paused);

typedef bool plan_choice(shim_function function, const void *site,
			 uintptr_t sp);

/* How calls reach profilers that the compiler has marked in other ways than by calls of the
 * hooks (room sources). */
struct plan_route {
	bool is_on; /* a profiler wants calls */
	/* The hooks of the only profiler, which use general registers only; NULL: the calls
	 * run the plan. */
	shim_frame_hook enter, leave;
	/* Its hooks for what marks reach directly, or NULL. */
	const struct shim_mark_hooks *marks;
	/* The same with a filter: they call the hooks of @enter and @leave for a function that
	 * is known to be wanted; false: the call must run the plan.  NULL without a filter. */
	plan_choice *chooses_enter, *chooses_leave;
};

/* The table points at other hooks.  State lock held. */
TOPIC(calls_routed, const struct plan_route *route);

/* Runs the current plan for @call.  The stubs that the table points at call it. */
void plan_dispatch(const struct plan_call *call);
/* Calls the hooks of all profilers in @plan that want @call. */
void plan_run(const struct plan *plan, struct thread *self,
	      const struct plan_call *call);

/* Runs the current plan for a call that dispatch.S does not handle itself. */
void plan_general(shim_function function, const void *site, uintptr_t frame,
		  uint32_t event, uintptr_t return_address);

#endif
