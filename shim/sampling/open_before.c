/*
 * The calls that were open when shim was attached to a running program, for profilers that
 * follow calls: the instrumented functions on the stack of a thread at its first event.
 * The hooks have missed their enters, and will see their leaves.
 *
 * Only functions that have hooks, or XRay's sleds, have marks at their ends.  The others are
 * left out: nothing would tell when they end.
 */
#include "sampling/open_before.h"

#include "dispatch/callspec.h"
#include "inspect/info.h"
#include "os/clock.h"
#include "os/sys.h"
#include "os/tasks.h"
#include "runtime/events.h"
#include "sampling/snapshot.h"

#include <shim/builtin.h>
#include <shim/info.h>

#include <shim/banned.h>

/* The threads that ran at the last attach and have not been asked yet.  The next attach
 * writes the same list anew; a thread may be reading it, and takes only its own number. */
struct older {
	uint64_t clock;
	uint32_t count;
	uint32_t tids[];
};

static struct older *older;

/* More threads than that get no open calls. */
#define OLDER_MAX 65536

static bool add_task(uint32_t tid, void *argument)
{
	struct older *list = argument;

	if (list->count == OLDER_MAX)
		return false;
	if (!thread_is_own(tid)) {
		__atomic_store_n(&list->tids[list->count], tid,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&list->count, list->count + 1,
				 __ATOMIC_RELEASE);
	}
	return true;
}

void open_before_note(void)
{
	size_t size = sizeof(struct older) + OLDER_MAX * sizeof(uint32_t);
	struct older *list = older;
	void *memory;

	/* The pages are touched as far as there are threads. */
	if (!list && sys_map(size, &memory) < 0)
		return;
	if (!list)
		list = memory;
	__atomic_store_n(&list->count, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&list->clock, clock_read(), __ATOMIC_RELAXED);
	tasks_each(add_task, list);
	__atomic_store_n(&older, list, __ATOMIC_RELEASE);
}

/* The place of the calling thread in the list, or NULL. */
static uint32_t *own_place(struct older *list)
{
	uint32_t count = list ? __atomic_load_n(&list->count,
						__ATOMIC_ACQUIRE) :
				0;
	uint32_t tid = count ? (uint32_t)sys_gettid() : 0;

	for (uint32_t i = 0; i < count; i++)
		if (__atomic_load_n(&list->tids[i], __ATOMIC_RELAXED) == tid)
			return &list->tids[i];
	return NULL;
}

/* The thread that forks was in the list. */
static bool forks_older;

void open_before_forks(void)
{
	forks_older = shim_has_open_before();
}

void open_before_forked(void)
{
	struct older *list = older;

	if (!list)
		return;
	list->tids[0] = (uint32_t)sys_gettid();
	list->count = forks_older;
}

bool shim_has_open_before(void)
{
	return own_place(__atomic_load_n(&older, __ATOMIC_ACQUIRE)) != NULL;
}

struct listing {
	struct unwind walk;
	struct shim_open_before *calls;
	uint32_t count, room;
};

static bool tells_its_end(shim_function function)
{
	enum shim_source source;

	return shim_function_source(function, &source) == SHIM_OK &&
	       (source == SHIM_SOURCE_HOOKS || source == SHIM_SOURCE_XRAY);
}

static bool is_recorded(shim_function function)
{
	return tells_its_end(function) &&
	       (!callspec_has_filter() ||
		callspec_filter(NULL, function) !=
			SHIM_CALL_INSTRUMENTATION_NONE);
}

static int list_calls(void *argument)
{
	struct listing *listing = argument;
	struct unwind *walk = &listing->walk;
	bool goes_on = true;

	for (uint32_t i = 0; goes_on && i < SHIM_STACK_DEPTH_MAX &&
			     listing->count < listing->room;
	     i++) {
		uintptr_t sp = walk->registers[WALK_SP];
		shim_function function;

		goes_on = unwind_step(walk);
		function = walk->function ? info_whole(walk->function) : 0;
		if (!is_recorded(function))
			continue;
		listing->calls[listing->count++] = (struct shim_open_before){
			function, sp
		};
	}
	return 0;
}

uint32_t shim_list_open_now(struct shim_open_before *calls, uint32_t room)
{
	struct listing listing = { .calls = calls, .room = room };
	struct thread *self = thread_get();

	if (snapshot_begin(&listing.walk, self, NULL))
		events_call_apart(self, list_calls, &listing);
	return listing.count;
}

uint32_t shim_list_open_before(struct shim_open_before *calls, uint32_t room,
			       uint64_t *clock)
{
	struct older *list = __atomic_load_n(&older, __ATOMIC_ACQUIRE);
	uint32_t *place = own_place(list), tid = (uint32_t)sys_gettid();

	/* Later threads may get the same number.  The next attach may have replaced it. */
	if (!place ||
	    !__atomic_compare_exchange_n(place, &tid, 0, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return 0;
	*clock = __atomic_load_n(&list->clock, __ATOMIC_RELAXED);
	return shim_list_open_now(calls, room);
}
