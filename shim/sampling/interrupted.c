/*
 * Finds the stack that a signal handler has interrupted, from the handler's own: its caller
 * is the kernel, and the caller of that is the interrupted code.
 */
#include "runtime/events.h"
#include "sampling/snapshot.h"

#include <shim/builtin.h>

#include <shim/banned.h>

struct search {
	struct unwind walk;
	uintptr_t low, high; /* the signal stack */
};

static int leave_signal_stack(void *argument)
{
	struct search *search = argument;
	const uintptr_t *sp = &search->walk.registers[WALK_SP];

	for (unsigned i = 0; i < SHIM_STACK_DEPTH_MAX; i++) {
		if (!unwind_step(&search->walk))
			return false;
		if (*sp - search->low >= search->high - search->low)
			return true;
	}
	return false;
}

bool shim_stack_interrupted(uintptr_t low, uintptr_t high, uintptr_t *sp)
{
	struct search search = { .low = low, .high = high };
	struct thread *self = thread_get();

	if (!snapshot_begin(&search.walk, self, NULL) ||
	    !events_call_apart(self, leave_signal_stack, &search))
		return false;
	*sp = search.walk.registers[WALK_SP];
	return true;
}
