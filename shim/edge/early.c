/*
 * Calls of hooks before shim has started.
 *
 * Some code of the program runs before libc and shim are ready.  IFUNC resolvers run
 * while the loader relocates objects: shim may not be relocated yet, and thread-local
 * storage is not initialized.  The functions of .preinit_array and the constructors of
 * libraries with -z initfirst run before libc has started.  This file stores such
 * calls, and repeats them after the profilers have started.  It counts calls that do
 * not fit as lost.
 *
 * Until is_relocated() is true, code may use only data that needs no relocation: the
 * data of this file, addressed relative to the program counter.
 */
#include "edge/edge.h"

#include "arch.h"
#include "dispatch/hook_table.h"
#include "module/builtin_list.h"
#include "module/start.h"
#include "os/sys.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/state.h"

#include <shim/banned.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* Called by arch/.../dispatch.S.  Returns the hook to call, or NULL before the start. */
HIDDEN void *edge_early(uintptr_t function, const void *site, unsigned event);

typedef void (*hook_function)(uintptr_t function, const void *site);

/* --- the state of the start --- */

static const char here;
static const void *const volatile relocated = &here;

static bool is_relocated(void)
{
	return relocated == &here;
}

/* Whether shim can start.  If SHIM_PROFILE has modules, libc must be complete, because
 * modules may call all of it. */
static bool may_start(void)
{
	static bool is_complete;

	if (is_complete)
		return true;
	if (!is_relocated() || !sys_has_thread_data())
		return false;
	is_complete = config_is_complete() || !start_wants_modules();
	return is_complete;
}

/* --- kept calls --- */

struct call {
	uintptr_t function;
	const void *site;
	bool leaves;
};

/* Also limits the depth: during the repetition, each open call has a frame. */
#define CALLS_MAX 1024

static struct call calls[CALLS_MAX];
static uint32_t kept_count,
	open_count; /* entries of calls; entered and not left */
static uint32_t lost_depth;
static uint64_t lost;

/* Whether the call fits.  Leaves room for the leave of each open call. */
static bool has_room(bool leaves)
{
	if (leaves)
		return lost_depth == 0;
	return lost_depth == 0 && kept_count + open_count + 2 <= CALLS_MAX;
}

static void keep_call(uintptr_t function, const void *site, bool leaves)
{
	if (!has_room(leaves)) {
		lost += leaves ? 0 : 1;
		lost_depth += leaves ? -1u : 1;
		return;
	}
	if (leaves && open_count == 0)
		return; /* the call began before the first hook */
	open_count += leaves ? -1u : 1;
	calls[kept_count].function = function;
	calls[kept_count].site = site;
	calls[kept_count++].leaves = leaves;
}

/* --- repeating kept calls --- */

static uint32_t next_kept;

static void call_hook(const struct call *call)
{
	hook_function hook = (hook_function)hook_table_hook(call->leaves);

	hook(call->function, call->site);
}

/* Repeats a call and its callees, each in a frame of its own, as the program made them. */
static __attribute__((noinline)) void repeat_call(void)
{
	call_hook(&calls[next_kept++]);
	while (next_kept < kept_count && !calls[next_kept].leaves)
		repeat_call();
	if (next_kept < kept_count)
		call_hook(&calls[next_kept++]);
	/* Prevents a tail call: the frame must exist until the leave hook returns. */
	__asm__ volatile("");
}

void edge_early_again(void)
{
	if (kept_count == 0 && lost == 0)
		return;
	if (state_get() == STATE_RUNNING) {
		while (next_kept < kept_count)
			repeat_call();
		record_lose(SHIM_LOST_OTHER, lost);
		if (lost > 0)
			log_line("%s",
				 "the program made more calls before libc "
				 "was ready than shim can store: some of "
				 "these calls are lost");
	}
	kept_count = next_kept = 0;
	lost = 0;
}

void *edge_early(uintptr_t function, const void *site, unsigned event)
{
	if (!may_start()) {
		keep_call(function, site, event != 0);
		return NULL;
	}
	if (config_is_complete())
		edge_start();
	else
		state_start();
	edge_early_again();
	return hook_table_hook(event != 0);
}
