/*
 * Disables and enables all hooks: plan_pause does the work.  The count of switches is
 * odd while hooks are disabled.  Pauses (of shim itself, for example in a fork) nest;
 * their end leaves hooks disabled that the program has disabled.
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
static void write_counts(void)
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

SUBSCRIBE(call_sites_switched, write_counts);

static int disable_hooks(void *unused)
{
	(void)unused;
	if (switched % 2 == 0) {
		switched++;
		plan_pause(true);
		write_counts();
	}
	return 0;
}

static int enable_hooks(void *unused)
{
	(void)unused;
	if (switched % 2 != 0) {
		switched++;
		plan_pause(false);
		write_counts();
	}
	return 0;
}

static unsigned pauses;
static bool is_disabled_by_pause;

static int begin_pause(void *unused)
{
	if (pauses++ == 0 && switched % 2 == 0) {
		is_disabled_by_pause = true;
		disable_hooks(unused);
	}
	return 0;
}

static int end_pause(void *unused)
{
	if (--pauses == 0 && is_disabled_by_pause) {
		is_disabled_by_pause = false;
		enable_hooks(unused);
	}
	return 0;
}

void hooks_switch_pause(bool begins)
{
	if (state_get() == STATE_RUNNING)
		state_call_locked(begins ? begin_pause : end_pause, NULL);
}

void hooks_switch_detach(bool begins)
{
	ASSERT_LOCKED();
	if (begins)
		disable_hooks(NULL);
	else
		enable_hooks(NULL);
}

void hooks_switch_renew(void)
{
	ASSERT_LOCKED();
	SHIM_ASSERT(switched % 2 != 0);
	/* The start of the recording is its switch number 0. */
	switched = UINT32_MAX;
}

void hooks_switch_forked(void)
{
	ASSERT_LOCKED();
	call_sites_settle();
	plan_forked(switched % 2 != 0);
	if (switched != 0)
		write_counts();
}

static enum shim_result switch_hooks(int (*work)(void *unused))
{
	state_start();
	if (state_get() != STATE_RUNNING || state_call_locked(work, NULL) < 0)
		return SHIM_E_FAIL;
	return SHIM_OK;
}

enum shim_result shim_hooks_disable(void)
{
	ENTRY_ASYNC();
	return switch_hooks(disable_hooks);
}

enum shim_result shim_hooks_enable(void)
{
	ENTRY_ASYNC();
	return switch_hooks(enable_hooks);
}
