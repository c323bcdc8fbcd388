/*
 * Calls of hooks before shim has started.
 *
 * Code of the program runs before there is a runtime to run in.  IFUNC resolvers run
 * while the loader relocates objects: this one may not be relocated yet, and what
 * threads have of their own is not filled in.  The functions of .preinit_array and the
 * constructors of libraries that begin first (-z initfirst) run before libc has begun.
 * Such calls are kept here and called again when the profilers have started; what does
 * not fit is counted as lost.
 *
 * Until is_relocated() nothing may be used that the loader has to fill in: only what
 * is in this file, reached from the program counter.
 */
#include "edge/edge.h"

#include "arch.h"
#include "dispatch/hook_table.h"
#include "module/builtin_list.h"
#include "module/start.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/state.h"

#include <shim/banned.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* entry.S: returns the hook to go on with, or NULL: there is none. */
HIDDEN void *edge_early(uintptr_t function, const void *site, unsigned event);

typedef void (*hook_function)(uintptr_t function, const void *site);

/* --- what can be used --- */

#define MARK 0x7368696d

static const char here;
static const void *const volatile relocated = &here;
static __thread volatile uint32_t marked = MARK;

static bool is_relocated(void)
{
	return relocated == &here;
}

/* The loader fills in the thread's data last, over whatever is there. */
static bool has_thread_data(void)
{
	return arch_has_thread_pointer() && marked == MARK;
}

/* Modules are opened and may use all of libc. */
static bool may_start(void)
{
	static bool known;

	if (known)
		return true;
	if (!is_relocated() || !has_thread_data())
		return false;
	known = config_is_complete() || !start_wants_modules();
	return known;
}

/* --- what is kept --- */

struct call {
	uintptr_t function;
	const void *site;
	bool leaves;
};

/* As many calls open at once, at most: each has a frame when they are called again. */
#define CALLS_MAX 1024

static struct call calls[CALLS_MAX];
static uint32_t count, open;	/* of calls; of these that have not been left */
static uint32_t lost_depth;
static uint64_t lost;

/* The leave of each call that was kept fits, too. */
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
		return;	/* of a call that began before the first hook */
	open += leaves ? -1u : 1;
	calls[count].function = function;
	calls[count].site = site;
	calls[count++].leaves = leaves;
}

/* --- and called again --- */

static uint32_t next;

static void call(const struct call *call)
{
	hook_function hook = (hook_function)hook_table_hook(call->leaves);

	hook(call->function, call->site);
}

/* The call and those in it: each in a frame of its own, as they were. */
static __attribute__((noinline)) void call_again(void)
{
	call(&calls[next++]);
	while (next < count && !calls[next].leaves)
		call_again();
	if (next < count)
		call(&calls[next++]);
	/* No jump: the frame of the call lasts until its leave has been called. */
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
			log_line("%s", "calls were made before libc had begun, "
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
