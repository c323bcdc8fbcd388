/*
 * Calls of hooks before shim has started.
 *
 * Some code of the program runs before libc and shim are ready.  IFUNC resolvers run
 * while the loader relocates objects: shim may not be relocated yet, and thread-local
 * storage is not initialized.  The functions of .preinit_array and the constructors of
 * libraries with -z initfirst run before libc has started.  This file keeps such calls
 * and repeats them when the profilers have started; calls that do not fit are counted
 * as lost.
 *
 * Until is_relocated(), code may use only what needs no relocation: the data of this
 * file, addressed relative to the program counter.
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

/* Called by arch/.../dispatch.S; returns the hook to call, or NULL if there is none yet. */
HIDDEN void *edge_early(uintptr_t function, const void *site, unsigned event);

typedef void (*hook_function)(uintptr_t function, const void *site);

/* --- what is ready --- */

#define MARK 0x7368696d

static const char here;
static const void *const volatile relocated = &here;
static __thread volatile uint32_t marked = MARK;

static bool is_relocated(void)
{
	return relocated == &here;
}

/* The loader initializes thread-local storage last, over its previous content. */
static bool has_thread_data(void)
{
	return sys_has_thread_pointer() && marked == MARK;
}

/* Starting opens modules, if any are wanted; they may use all of libc. */
static bool may_start(void)
{
	static bool is_complete;

	if (is_complete)
		return true;
	if (!is_relocated() || !has_thread_data())
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

/* Also limits the depth: each open call has a frame when the calls are repeated. */
#define CALLS_MAX 1024

static struct call calls[CALLS_MAX];
static uint32_t count, open; /* entries of calls; entered and not left */
static uint32_t lost_depth;
static uint64_t lost;

/* Reserves room for the leave of each kept call. */
static bool has_room(bool leaves)
{
	if (leaves)
		return lost_depth == 0;
	return lost_depth == 0 && count + open + 2 <= CALLS_MAX;
}

static void keep(uintptr_t function, const void *site, bool leaves)
{
	if (!has_room(leaves)) {
		lost += leaves ? 0 : 1;
		lost_depth += leaves ? -1u : 1;
		return;
	}
	if (leaves && open == 0)
		return; /* the call began before the first hook */
	open += leaves ? -1u : 1;
	calls[count].function = function;
	calls[count].site = site;
	calls[count++].leaves = leaves;
}

/* --- repeating them --- */

static uint32_t next;

static void call(const struct call *call)
{
	hook_function hook = (hook_function)hook_table_hook(call->leaves);

	hook(call->function, call->site);
}

/* Repeats a call and its callees, each in a frame of its own, as the first time. */
static __attribute__((noinline)) void call_again(void)
{
	call(&calls[next++]);
	while (next < count && !calls[next].leaves)
		call_again();
	if (next < count)
		call(&calls[next++]);
	/* Prevents a tail call: the frame must last until the leave hook returns. */
	__asm__ volatile("");
}

void edge_early_again(void)
{
	if (count == 0 && lost == 0)
		return;
	if (state_get() == STATE_RUNNING) {
		while (next < count)
			call_again();
		record_lose(SHIM_LOST_OTHER, lost);
		if (lost > 0)
			log_line("%s",
				 "calls were made before libc had begun, "
				 "more than are kept until then: the rest "
				 "is lost");
	}
	count = next = 0;
	lost = 0;
}

void *edge_early(uintptr_t function, const void *site, unsigned event)
{
	if (!may_start()) {
		keep(function, site, event != 0);
		return NULL;
	}
	if (config_is_complete())
		edge_start();
	else
		state_start();
	edge_early_again();
	return hook_table_hook(event != 0);
}
