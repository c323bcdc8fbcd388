/*
 * The landing pads that run on a thread.  They form a list, because a destructor in a
 * landing pad may throw and catch exceptions of its own.  A stack pointer identifies
 * each.
 */
#include "runtime/landings.h"

#include "runtime/thread.h"

#include <shim/banned.h>

/* The largest distance between a landing pad's frame and its call of __cxa_begin_catch. */
#define CALL_DISTANCE 4096
/* Frames with a larger distance are on different stacks, unless both are on the
 * thread's own stack. */
#define STACK_DISTANCE (256u << 10)

__thread uint8_t landings_count;

static bool is_below(const struct thread *self, uintptr_t low, uintptr_t high)
{
	bool is_own = thread_is_on_own_stack(self, low);

	if (low >= high || is_own != thread_is_on_own_stack(self, high))
		return false;
	return is_own || high - low < STACK_DISTANCE;
}

static void remove_at(struct thread *self, unsigned number)
{
	for (unsigned i = number; i + 1 < landings_count; i++)
		self->landings[i] = self->landings[i + 1];
	landings_count--;
}

void landings_cut(uintptr_t sp)
{
	struct thread *self = thread_current;

	for (unsigned i = landings_count; self && i-- > 0;)
		if (is_below(self, self->landings[i].sp, sp))
			remove_at(self, i);
}

void landings_begin(uintptr_t sp, uintptr_t end)
{
	struct thread *self = thread_get();

	if (!self)
		return;
	landings_cut(sp);
	/* A frame has a second landing pad after a catch block has thrown an
	 * exception. */
	for (unsigned i = landings_count; i-- > 0;)
		if (self->landings[i].sp == sp)
			remove_at(self, i);
	if (landings_count == LANDINGS_MAX)
		remove_at(self, 0);
	self->landings[landings_count] = (struct landing){ sp, end };
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	landings_count++;
}

void landings_caught(uintptr_t sp)
{
	struct thread *self = thread_current;

	for (unsigned i = landings_count; self && i-- > 0;) {
		if (self->landings[i].sp < sp ||
		    self->landings[i].sp - sp > CALL_DISTANCE)
			continue;
		remove_at(self, i);
		return;
	}
}

/* The program runs in @frame, so frames below no longer exist: their landing pads ended
 * without a call that shim sees. */
bool landings_has(uintptr_t frame)
{
	struct thread *self = thread_current;

	for (unsigned i = landings_count; self && i-- > 0;) {
		const struct landing *landing = &self->landings[i];

		if (frame >= landing->sp && frame < landing->end)
			return true;
		if (is_below(self, landing->sp, frame) && landing->end <= frame)
			remove_at(self, i);
	}
	return false;
}
