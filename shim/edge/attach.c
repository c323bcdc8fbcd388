/*
 * The start of shim in a program that runs without it, and the end of the recording
 * before the program's.  profrun calls the functions of <shim/attach.h> on a thread of the
 * program, with all signals blocked, on a stack of its own.
 */
#include "edge/edge.h"

#include "coverage/coverage.h"
#include "dispatch/call_sites.h"
#include "dispatch/callspec.h"
#include "dispatch/hooks_switch.h"
#include "dispatch/plan.h"
#include "dispatch/redirects.h"
#include "heap/allocations.h"
#include "image/image.h"
#include "module/control.h"
#include "module/late.h"
#include "module/module.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/events.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/state.h"
#include "sampling/open_before.h"
#include "sampling/open_call.h"
#include "sampling/sample.h"

#include <shim/attach.h>

#include <shim/banned.h>

uint32_t profrun_attach_state;
uint64_t profrun_attach_mapped;

static int prepare(void *settings)
{
	int r = config_take(settings);

	if (r < 0)
		return r;
	redirects_enable();
	allocations_attached();
	return 0;
}

static enum shim_result start(const char *settings)
{
	if (!lookup_attach())
		return SHIM_E_FAIL;
	open_before_note();
	if (state_call_locked(prepare, (void *)settings) < 0)
		return SHIM_E_OUTOFMEMORY;
	edge_start();
	if (state_get() != STATE_RUNNING)
		return SHIM_E_FAIL;
	edge_finish_start();
	if (sample_is_wanted())
		thread_get();
	sample_adopt_threads();
	return SHIM_OK;
}

static int go_on(void *unused)
{
	(void)unused;
	allocations_attached();
	/* Forgets the slots of objects that were unloaded meanwhile. */
	image_scan();
	redirects_redo();
	hooks_switch_detach(false);
	call_sites_detach(false);
	record_detach(false);
	return 0;
}

static int leave(void *unused)
{
	(void)unused;
	/* Comes first, because pauses switch call sites off, which lead to libc's empty
	 * hooks next. */
	call_sites_detach(true);
	hooks_switch_detach(true);
	redirects_undo();
	record_detach(true);
	return 0;
}

static int renew(void *settings)
{
	const char *filter = config.filter;
	int r = config_renew(settings);

	if (r == 0)
		r = record_renew();
	if (r < 0)
		return r;
	if (config.filter != filter)
		callspec_renew();
	if (config_variable("SHIM_LIBCALLS"))
		callspec_change_libcalls(config_variable("SHIM_LIBCALLS"));
	hooks_switch_renew();
	plan_update();
	/* Without this file, functions have addresses for names. */
	image_renew();
	return 0;
}

static bool begin_another(const char *settings)
{
	if (state_call_locked(renew, (void *)settings) < 0)
		return false;
	RAISE(recording_began);
	coverage_renew();
	control_renew();
	open_before_note();
	return true;
}

/* The profilers that the settings name, or NULL: the same as before. */
static const char *find_profilers(const char *settings)
{
	const char *value = NULL;

	for (; *settings && !value; settings += text_length(settings) + 1)
		value = text_after(settings, "SHIM_PROFILE=");
	return value;
}

static bool can_have(const char *profilers, char *settings)
{
	char memory[SHIM_ATTACH_REASON];
	struct text why, reason;

	text_init(&why, memory, sizeof(memory));
	if (!profilers || late_can_choose(profilers, &why))
		return true;
	text_init(&reason, settings, SHIM_ATTACH_REASON);
	text_add(&reason, memory);
	return false;
}

static enum shim_result begin_again(char *settings)
{
	bool has_profilers = find_profilers(settings) != NULL;

	if (!can_have(find_profilers(settings), settings))
		return SHIM_E_INVALIDARG;
	if (*settings && !begin_another(settings))
		return SHIM_E_FAIL;
	if (has_profilers)
		late_stop_others(config.profile);
	if (state_call_locked(go_on, NULL) < 0)
		return SHIM_E_FAIL;
	if (sample_is_wanted())
		open_calls_note();
	sample_pause(false);
	/* Threads that began meanwhile have no record yet, and libc has set its action of the
	 * signal when the first of them began. */
	sample_signal_keep();
	sample_adopt_threads();
	coverage_detach(false);
	if (has_profilers)
		late_start_all(config.profile, module_load);
	profrun_attach_state = SHIM_ATTACH_RECORDS;
	return SHIM_OK;
}

static enum shim_result begin(char *settings)
{
	static bool has_begun;
	enum shim_result result;

	if (profrun_attach_state == SHIM_ATTACH_DETACHED)
		return begin_again(settings);
	/* The profrun before may have been killed while another thread was here. */
	if (state_get() != STATE_LOADED ||
	    __atomic_exchange_n(&has_begun, true, __ATOMIC_ACQ_REL))
		return SHIM_E_FAIL;
	result = start(settings);
	if (result == SHIM_OK)
		profrun_attach_state = SHIM_ATTACH_RECORDS;
	return result;
}

static enum shim_result end(void)
{
	if (profrun_attach_state != SHIM_ATTACH_RECORDS)
		return SHIM_E_FAIL;
	sample_pause(true);
	coverage_detach(true);
	if (state_call_locked(leave, NULL) < 0)
		return SHIM_E_FAIL;
	profrun_attach_mapped = sys_mapped();
	profrun_attach_state = SHIM_ATTACH_DETACHED;
	return SHIM_OK;
}

EDGE enum shim_result profrun_attach_start(char *settings)
{
	uint32_t since = log_end();
	enum shim_result result = begin(settings);
	struct text reason;

	if (result != SHIM_OK && result != SHIM_E_INVALIDARG) {
		text_init(&reason, settings, SHIM_ATTACH_REASON);
		log_copy(since, &reason);
	}
	return result;
}

EDGE enum shim_result profrun_attach_stop(void)
{
	return end();
}
