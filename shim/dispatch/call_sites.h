/*
 * The instructions in the program that call the hooks, and switching them off
 * and on while it runs.  A call that is off costs what a test of a register
 * costs; nothing of ours is reached.
 *
 * Nobody pays for this before something is switched for the first time: until
 * then images are only remembered.  State lock held for all of these.
 */
#ifndef SHIM_CALL_SITES_H
#define SHIM_CALL_SITES_H

#include "runtime/subscribe.h"

#include <stdbool.h>
#include <stdint.h>

/* An image in memory, as far as finding its calls needs it. */
struct call_sites_image {
	uintptr_t start, end;
	uintptr_t frames;	/* .eh_frame_hdr; 0: it has none */
	/* Another thread may unload it while we look: do not touch it. */
	bool may_go;
};

/* Remembers an image if the table found slots of the hooks in it. */
void call_sites_add(const struct call_sites_image *image);
/* Forgets the calls in an address range that is gone. */
void call_sites_remove(uintptr_t start, uintptr_t end);

/* In a forked child: what call_sites_add has not named again between these two is
 * gone, the rest as it was.  call_sites_settle comes next. */
void call_sites_fork_begin(void);
void call_sites_fork_end(void);

/*
 * Turns all calls off; or on again, but for those that were switched off one
 * by one.  Returns 0, or -errno if that of some could not be changed: then the
 * table must see to it.
 */
int call_sites_switch_all(bool on);

/* The call that returns to @return_address.  -ENOENT: there is none known;
 * -EBUSY: not now, its object may be about to go. */
int call_sites_switch_call(uintptr_t return_address, bool on);

/* The jumps to the leave hook that end @function.  How many, or as above. */
int call_sites_switch_jumps(uintptr_t function, bool on);

/* All that were switched off one by one are on again. */
int call_sites_unfilter_all(void);

/* Does what had to wait until no object was about to go. */
void call_sites_settle(void);

/* Whether the function that begins there calls hooks, switched on or off. */
bool call_sites_has(uintptr_t function);

struct call_sites_state {
	uint32_t sites;			/* known */
	uint32_t off;			/* of them */
	uint32_t rejected;		/* looked like one, in no function */
	uint32_t images;		/* with calls of hooks */
	uint32_t images_unwritable;	/* switched by the table only */
};

struct call_sites_state sites_state(void);

/* Sites were switched on or off.  State lock held. */
TOPIC(call_sites_switched, void);

#endif
