/*
 * Call sites: the instructions of the program that call the hooks.  They are switched
 * off and on while the program runs.  A call that is off costs as much as the test of
 * a register, and does not reach shim.
 *
 * Until the first switch, images are only remembered, which costs nothing else.  All
 * functions: state lock held.
 */
#ifndef SHIM_CALL_SITES_H
#define SHIM_CALL_SITES_H

#include "runtime/subscribe.h"

#include <shim/hooks.h>
#include <stdbool.h>
#include <stdint.h>

/* The properties of an image that are needed to find its call sites. */
struct call_sites_image {
	uintptr_t start, end;
	uintptr_t frames; /* .eh_frame_hdr; 0: it has none */
	/* Another thread may unload it at any time: read it by system calls only. */
	bool may_go;
};

/* Remembers an image if the hook table has slots in it. */
void call_sites_add(const struct call_sites_image *image);
/* Forgets the call sites in an address range that was unmapped. */
void call_sites_remove(uintptr_t start, uintptr_t end);

/* In a forked child: images that call_sites_add does not name again between these two
 * are forgotten; the others stay.  The caller calls call_sites_settle next. */
void call_sites_fork_begin(void);
void call_sites_fork_end(void);

/*
 * Switches all calls off; or on again, except those that were switched off one by
 * one.  Returns 0, or -errno if some code could not be changed: then the hook table
 * must switch those calls.
 */
int call_sites_switch_all(bool on);

/* Switches the call that returns to @return_address.  Returns 0; -ENOENT if that
 * call site is unknown; -EBUSY while its object may be unloaded; -errno. */
int call_sites_switch_call(uintptr_t return_address, bool on);

/* Switches the jumps to the leave hook that end @function.  Returns how many, or an
 * error as above. */
int call_sites_switch_jumps(uintptr_t function, bool on);

/*
 * Switches @count calls off or on for a profiler, beside the two above: a call is off
 * as long as one of the reasons holds.  Also waits until no thread executes the old code.
 * Calls of one image are written together.  Returns 0, or the first error as above; the
 * other calls are switched then.
 */
int call_sites_throttle(const struct shim_hook_call *calls, uint32_t count,
			bool on);

/* Ends call_sites_throttle for all calls. */
int call_sites_unthrottle_all(void);

/* Switches on all calls that were switched off by call_sites_switch_call and
 * call_sites_switch_jumps. */
int call_sites_unfilter_all(void);

/* Makes the changes that had to wait while an object was being unloaded. */
void call_sites_settle(void);

/* Whether the function at @function calls hooks, switched on or off. */
bool call_sites_has(uintptr_t function);

struct call_sites_state {
	uint32_t sites;	   /* known call sites */
	uint32_t off;	   /* of these, switched off */
	uint32_t rejected; /* candidates that overlap or are in no function */
	uint32_t images;   /* with call sites */
	uint32_t images_unwritable; /* switched by the hook table only */
};

struct call_sites_state sites_state(void);

/* Sites were switched on or off.  State lock held. */
TOPIC(call_sites_switched, void);

#endif
