/*
 * Call sites: the instructions of the program that call the hooks.  shim switches them
 * off and on while the program runs.  A call that is off costs as much as the test of a
 * register, and does not reach shim.
 *
 * Until the first switch, shim only stores the list of images.  All functions: state
 * lock held.
 */
#ifndef SHIM_CALL_SITES_H
#define SHIM_CALL_SITES_H

#include "runtime/subscribe.h"

#include <shim/builtin.h>
#include <shim/hooks.h>
#include <stdbool.h>
#include <stdint.h>

/* The properties of an image that are needed to find its call sites. */
struct call_sites_image {
	uintptr_t start, end;
	uintptr_t frames; /* .eh_frame_hdr; 0: none */
	/* Another thread may unload the image at any time: read it by system calls. */
	bool may_go;
};

/* Adds an image if the hook table has slots in it. */
void call_sites_add(const struct call_sites_image *image);
/* Removes the call sites in an address range that was unmapped. */
void call_sites_remove(uintptr_t start, uintptr_t end);

/* A forked child calls call_sites_add for each image between these two.  The second
 * call removes the other images.  The caller calls call_sites_settle next. */
void call_sites_fork_begin(void);
void call_sites_fork_end(void);

/*
 * Switches all calls off; or on again, except calls that were switched off singly.
 * Returns 0; -errno if shim could not change some code: then the hook table must switch
 * those calls.
 */
int call_sites_switch_all(bool on);

/* Switches the call that returns to @return_address.  Returns 0; -ENOENT if that
 * call site is unknown; -ENOTSUP if the code behind it needs the call; -EBUSY while its
 * object may be unloaded; -errno. */
int call_sites_switch_call(uintptr_t return_address, bool on);

/* Switches the jumps to the leave hook at the end of @function.  Returns their number;
 * -EALREADY if all were switched before, so that a jump that still arrives is one that is
 * not known; or an error as above. */
int call_sites_switch_jumps(uintptr_t function, bool on);

/*
 * Switches @count calls off or on for a profiler.  This is independent of the functions
 * above: a call is off as long as one reason holds.  Waits until no thread executes the
 * old code.  Writes calls of one image together.  Returns 0, or the first error as
 * above, after switching the other calls.
 */
int call_sites_throttle(const struct shim_hook_call *calls, uint32_t count,
			bool on);

/*
 * Lets @count calls of the enter hook lead to the code of their counters
 * (call_counters.h), and stores which do.  In a process of one thread, each is off while
 * it changes; otherwise its distance changes by one store.  Marks of entries count by their
 * thunks.  Returns 0; -ENOTSUP if a call does not go through a stub of the linker, or cannot
 * be changed by one store or be off, or is a mark that cannot count; -ENOMEM if there is no
 * memory near the code; or an error as above.  Such a call is on or off.
 */
int call_sites_count(struct shim_counted_call *calls, uint32_t count);

/* Ends both for all calls. */
int call_sites_unthrottle_all(void);

/* Gives all sites the compiler's code until @begins is false.  Returns 0 or -errno. */
int call_sites_detach(bool begins);

/* Switches on all calls that call_sites_switch_call and call_sites_switch_jumps have
 * switched off. */
int call_sites_unfilter_all(void);

/* Makes the changes that had to wait while an object was being unloaded. */
void call_sites_settle(void);

/* Whether the function at @function has calls of hooks, switched on or off. */
bool call_sites_has(uintptr_t function);
/* Whether a call of a hook returns to @address. */
bool call_sites_is_hook(uintptr_t address);

struct call_sites_state {
	uint32_t sites;	   /* known call sites */
	uint32_t off;	   /* call sites that are switched off */
	uint32_t rejected; /* candidates that overlap or are in no function */
	uint32_t images;   /* images with call sites */
	uint32_t
		images_unwritable; /* images that only the hook table switches */
};

struct call_sites_state sites_state(void);

/*
 * Marks that are no calls of hooks (room sources).  The functions above ask for them where
 * they do not know a call.  State lock held.
 */
enum other_reason { OTHER_FILTER, OTHER_THROTTLE };

struct other_call {
	uintptr_t address; /* where the mark's call returns to */
	/* If @address is 0: whose end has no mark, so that its entry is meant. */
	uintptr_t function;
	enum other_reason reason;
	bool on;
	int result; /* stays -ENOENT if no mark is there */
};

/* A mark is to be on or off for a reason; its code changes with other_calls_settled. */
TOPIC(other_call_switched, struct other_call *call);
/* A mark is to count its calls, as call_sites_count says; its code changes likewise.  *@result
 * stays -ENOENT if no mark is there, and becomes -ENOTSUP if it cannot count. */
TOPIC(other_call_counted, struct shim_counted_call *call, int *result);
/* No mark is off for this reason any more. */
TOPIC(other_calls_reset, enum other_reason reason);
/* Changes the code.  Stores the first error in *@result. */
TOPIC(other_calls_settled, int *result);
/* Adds the marks to the call sites. */
TOPIC(other_calls_added, struct call_sites_state *state);

/* shim has switched sites on or off.  State lock held. */
TOPIC(call_sites_switched, void);

#endif
