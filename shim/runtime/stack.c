/*
 * Finds the bounds of the stack that the calling task runs on.  libc does not know the
 * stacks of coroutines and of raw clone, so the kernel is the source: its mappings, and
 * its alternate signal stack.
 */
#include "arch.h"
#include "os/maps.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/state.h"

#include "runtime/thread.h"

#include <shim/builtin.h>
#include <shim/record.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include <shim/banned.h>

struct request {
	uintptr_t sp, low, high;
	uintptr_t gap; /* the end of the mapping below */
	bool found, grows;
};

static bool visit_mapping(const struct map *map, void *argument)
{
	struct request *request = argument;

	if (request->sp >= map->end) {
		request->gap = map->end;
		return true;
	}
	if (request->sp >= map->start) {
		request->found = true;
		request->low = map->start;
		request->high = map->end;
		request->grows = text_equal(map->path, "[stack]");
	}
	return false;
}

/* maps_find reads one mapping, which is fast if there are many.  The first thread's stack
 * grows down to the mapping below, so for that stack maps_read reads all mappings. */
static void find_bounds(struct request *request)
{
	bool executable;
	char name[64];

	request->found = maps_find(request->sp, &request->low, &request->high,
				   &executable, name) == 0 &&
			 !text_equal(name, "[stack]");
	if (!request->found)
		maps_read(visit_mapping, request);
}

static int find_bounds_of_thread(void *argument)
{
	struct request *request = argument;
	uint64_t limit;
	uintptr_t block = arch_thread_pointer();

	find_bounds(request);
	if (!request->found)
		return 0;
	/* The kernel may merge a thread's stack with the mapping right above it. */
	if (!request->grows) {
		if (block > request->sp && block < request->high)
			request->high = (block & ~4095ul) + 4096;
		return 0;
	}
	/* The first thread's stack grows on demand. */
	if (sys_limit(RLIMIT_STACK, &limit) < 0 ||
	    limit >= request->high - request->gap)
		request->low = request->gap;
	else
		request->low = request->high - limit;
	return 0;
}

/* A thread's own stack contains libc's control block.  The first thread's contains the
 * bytes of AT_RANDOM.  It stays mapped while the thread runs. */
bool stack_is_own(uintptr_t low, uintptr_t high)
{
	static uintptr_t cached;
	uintptr_t random_bytes = __atomic_load_n(&cached, __ATOMIC_RELAXED);

	if (random_bytes == 0) {
		random_bytes = getauxval(AT_RANDOM);
		__atomic_store_n(&cached, random_bytes, __ATOMIC_RELAXED);
	}
	return arch_thread_pointer() - low < high - low ||
	       random_bytes - low < high - low;
}

/* Not inlined, and called as a tail call, because shim_stack_find may have little stack. */
static __attribute__((noinline)) enum shim_stack
find_thread_stack(uintptr_t sp, uintptr_t *low, uintptr_t *high)
{
	struct request request = { .sp = sp };

	state_call_locked(find_bounds_of_thread, &request);
	if (request.found) {
		*low = request.low;
		*high = request.high;
	} else {
		*low = sp > (4ul << 20) ? (sp - (4ul << 20)) & ~4095ul : 0;
		*high = (sp & ~4095ul) + (64ul << 10);
	}
	return SHIM_STACK_THREAD;
}

static __attribute__((noinline)) bool
is_on_signal_stack(uintptr_t sp, uintptr_t *low, uintptr_t *high)
{
	uintptr_t own_low, own_high;
	bool in_use = false;

	/* The kernel compares the stack pointer of the caller, so this call must run on
	 * the stack in question; or on one of shim's, to which a hook has switched from
	 * there. */
	return sys_signal_stack(low, high, &in_use) == 0 &&
	       sp - *low < *high - *low &&
	       (in_use ||
		shim_callback_stack((uintptr_t)__builtin_frame_address(0),
				    &own_low, &own_high));
}

uint32_t shim_signal_stack_changes;

bool shim_signal_stack(uintptr_t *low, uintptr_t *high)
{
	bool in_use;

	return sys_signal_stack(low, high, &in_use) == 0 && *low < *high;
}

/* Not inlined, because shim_stack_find may have little stack. */
static __attribute__((noinline)) enum shim_stack
find_partly(uintptr_t sp, uintptr_t *low, uintptr_t *high)
{
	uintptr_t unwanted_low, unwanted_high;

	return shim_stack_find(sp, low ? low : &unwanted_low,
			       high ? high : &unwanted_high);
}

enum shim_stack shim_stack_find(uintptr_t sp, uintptr_t *low, uintptr_t *high)
{
	if (!low || !high)
		return find_partly(sp, low, high);
	if (is_on_signal_stack(sp, low, high))
		return SHIM_STACK_SIGNAL;
	return find_thread_stack(sp, low, high);
}
