/*
 * Slow hooks in signal handlers that interrupt a slow hook.  A thread has one block of
 * memory for the values of a hook.  For a nested hook, shim saves the part that the
 * interrupted hook uses, and provides another stack.
 */
#include "dispatch/nested.h"

#include "arch.h"
#include "os/sys.h"
#include "runtime/events.h"
#include "unwind/unwind.h"

#include <shim/banned.h>

/* More frames than handlers and hooks have. */
#define STEPS_MAX 1024

static void save_level(const struct thread *self, struct hook_level *level)
{
	level->frame = self->frame;
	level->values = self->values;
	level->results = self->results;
	level->callback_stack = self->callback_stack;
	level->on_callback_stack = self->on_callback_stack;
	level->is_hook_apart = self->is_hook_apart;
}

/* Restores all but the frame. */
static void restore_level(struct thread *self, const struct hook_level *level)
{
	self->values = level->values;
	self->results = level->results;
	self->callback_stack = level->callback_stack;
	self->on_callback_stack = level->on_callback_stack;
	self->is_hook_apart = level->is_hook_apart;
}

/* --- the caller of the hook --- */

struct search {
	struct thread *self;
	struct unwind walk;
};

/* Finds the bounds of a handler's stack, so that the unwinder reads it without system
 * calls. */
static void find_stack(struct unwind *walk, struct thread *self)
{
	uintptr_t sp = walk->registers[WALK_SP], low, high;
	bool in_use = false;

	unwind_begin(walk, self);
	if (walk->stack_high == 0 &&
	    sys_signal_stack(&low, &high, &in_use) == 0 && in_use &&
	    sp - low < high - low) {
		walk->stack_low = sp - 128;
		walk->stack_high = high;
	}
}

/* Walks the frames up to that of a signal handler's return, or that of the hook. */
static int find_caller(void *argument)
{
	struct search *search = argument;
	const uintptr_t frame = (uintptr_t)search->self->frame;
	struct unwind *walk = &search->walk;
	uintptr_t sp;

	find_stack(walk, search->self);
	for (unsigned i = 0; i < STEPS_MAX; i++) {
		if (unwind_is_signal_frame(walk))
			return NESTED_HANDLER;
		sp = walk->registers[WALK_SP];
		if (!unwind_step(walk))
			return walk->is_last ? NESTED_LEFT : NESTED_CALL;
		if (frame >= sp && frame < walk->registers[WALK_SP])
			return NESTED_CALL;
	}
	return NESTED_CALL;
}

/* Begins a level.  A signal handler that comes meanwhile uses the next level. */
static enum nested begin_level(struct thread *self)
{
	uint32_t depth = self->hook_depth;
	struct hook_level *level = &self->own_levels[depth];
	struct search search = { .self = self };
	enum nested whose;

	search.walk.known = ARCH_GET_OWN_REGISTERS(search.walk.registers);
	search.walk.is_exact = true;
	if (depth == HOOK_LEVELS || search.walk.known == 0)
		return NESTED_CALL;
	save_level(self, &self->outer_levels[depth]);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->hook_depth = depth + 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	whose = (enum nested)events_call_on(&level->callback_stack, find_caller,
					    &search);
	if (whose == NESTED_HANDLER)
		restore_level(self, level);
	else
		self->hook_depth = depth;
	return whose;
}

/* Returns to the state that the innermost hook has interrupted. */
static void leave_level(struct thread *self)
{
	if (self->hook_depth > 0) {
		nested_end(self);
		return;
	}
	self->frame = NULL;
	if (self->is_hook_apart)
		self->is_hook_apart = self->on_callback_stack = false;
}

enum nested nested_begin(struct thread *self)
{
	while (self->frame) {
		enum nested whose = begin_level(self);

		if (whose != NESTED_LEFT)
			return whose;
		leave_level(self);
	}
	return NESTED_LEFT;
}

void nested_end(struct thread *self)
{
	uint32_t depth = self->hook_depth - 1;
	const struct hook_level *outer = &self->outer_levels[depth];
	struct hook_level *level = &self->own_levels[depth];

	__atomic_store_n(&self->frame, outer->frame, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	level->values = self->values;
	level->results = self->results;
	level->callback_stack = self->callback_stack;
	restore_level(self, outer);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->hook_depth = depth;
}

void nested_jumped(struct thread *self, uintptr_t sp)
{
	while (self->frame && (uintptr_t)self->frame < sp)
		leave_level(self);
}
