/*
 * Disables and enables all hooks: plan_pause does the work.  The count of
 * switches is odd while hooks are disabled; pauses (of shim itself, for
 * example in a fork) nest and do not enable what the program has disabled.
 */
#include "dispatch/hooks_switch.h"

#include "dispatch/call_sites.h"
#include "dispatch/plan.h"
#include "runtime/contract.h"
#include "runtime/record.h"
#include "runtime/state.h"

#include <shim/format.h>
#include <shim/hooks.h>
#include <stddef.h>

#include <shim/banned.h>

static uint32_t switched; /* odd: disabled */

/* Writes the number of call sites, and of those that are off, into the recording. */
static void calls_note(void)
{
	struct shim_meta *meta = record_meta();
	struct call_sites_state state;

	if (!meta)
		return;
	state = sites_state();
	meta->switched = switched;
	meta->sites = state.sites;
	meta->sites_off = state.off;
	meta->sites_rejected = state.rejected;
	meta->site_images = state.images;
	meta->site_images_unwritable = state.images_unwritable;
}

SUBSCRIBE(call_sites_switched, calls_note);

static int stop(void *unused)
{
	(void)unused;
	if (switched % 2 == 0) {
		switched++;
		plan_pause(true);
		calls_note();
	}
	return 0;
}

static int enable_hooks(void *unused)
{
	(void)unused;
	if (switched % 2 != 0) {
		switched++;
		plan_pause(false);
		calls_note();
	}
	return 0;
}

static unsigned pauses;
static bool is_stopped_by_pause;

static int begin_pause(void *unused)
{
	if (pauses++ == 0 && switched % 2 == 0) {
		is_stopped_by_pause = true;
		stop(unused);
	}
	return 0;
}

static int end_pause(void *unused)
{
	if (--pauses == 0 && is_stopped_by_pause) {
		is_stopped_by_pause = false;
		enable_hooks(unused);
	}
	return 0;
}

void hooks_switch_pause(bool begins)
{
	if (state_get() == STATE_RUNNING)
		state_slowly(begins ? begin_pause : end_pause, NULL);
}

void hooks_switch_forked(void)
{
	ASSERT_LOCKED();
	call_sites_settle();
	plan_forked(switched % 2 != 0);
	if (switched != 0)
		calls_note();
}

static enum shim_result do_slowly(int (*work)(void *unused))
{
	state_start();
	if (state_get() != STATE_RUNNING || state_slowly(work, NULL) < 0)
		return SHIM_E_FAIL;
	return SHIM_OK;
}

enum shim_result shim_hooks_disable(void)
{
	ENTRY_ASYNC();
	return do_slowly(stop);
}

enum shim_result shim_hooks_enable(void)
{
	ENTRY_ASYNC();
	return do_slowly(enable_hooks);
}
