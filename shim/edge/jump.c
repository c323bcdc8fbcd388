/*
 * Wrappers of functions that end frames without a leave hook: longjmp and its variants,
 * and coroutine switches, which leave a whole stack.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "arch.h"
#include "dispatch/frame_exits.h"
#include "os/lookup.h"
#include "runtime/events.h"
#include "runtime/hidden_signals.h"
#include "runtime/landings.h"
#include "runtime/thread.h"
#include "sampling/sample.h"

#include <stdarg.h>
#include <ucontext.h>

#include <shim/banned.h>

/* --- setjmp: the stubs are in arch/.../edge.S --- */

static const char *const savers[] = { "setjmp", "_setjmp", "__sigsetjmp" };
static void *real_savers[3];

enum { SETJMP = 0, SIGSETJMP = 2 };

__attribute__((visibility("hidden"))) void *
edge_jump_saved(void *buffer, uintptr_t sp, unsigned which, int with_mask);

/* (Not inlined, because most jumps do not need its frame.) */
static __attribute__((noinline, cold)) void raise_saved(void *buffer,
							uintptr_t sp)
{
	RAISE(jump_saved, buffer, sp);
}

static __attribute__((noinline, cold)) void *find_saver(unsigned which)
{
	real_savers[which] = lookup_real(savers[which]);
	return real_savers[which];
}

void *edge_jump_saved(void *buffer, uintptr_t sp, unsigned which, int with_mask)
{
	/* Buffers for thread cancellation have no room for a mask. */
	if (which == SETJMP || (which == SIGSETJMP && with_mask))
		hidden_jump_saved(buffer);
	if (__atomic_load_n(&events_counts.jump_saved, __ATOMIC_RELAXED) > 0 &&
	    !RAISE_SOLE(jump_saved, buffer, sp))
		raise_saved(buffer, sp);
	return real_savers[which] ? real_savers[which] : find_saver(which);
}

/* --- longjmp --- */

typedef void (*jumper)(void *buffer, int value) __attribute__((noreturn));

static const char *const jumpers[] = { "longjmp", "_longjmp", "siglongjmp",
				       "__longjmp_chk" };
static jumper real_jumpers[4];

static __attribute__((noinline, cold)) void raise_taken(void *buffer)
{
	RAISE(jump_taken, buffer, arch_jump_sp(buffer));
}

/* Whether the thread has frames that a jump may leave and that shim must close: callbacks,
 * hooks, open calls, landing pads. */
static bool has_frames(const struct thread *self)
{
	return self && (self->guard || self->dispatching || self->frame ||
			self->pending_answer || self->tracks ||
			(self->rests & 1) || landings_count > 0);
}

/* A program may jump a million times in a second, so that jumps are cheap while nothing is
 * recorded. */
static __attribute__((noreturn)) void jump(unsigned which, void *buffer,
					   int value)
{
	if (!real_jumpers[which])
		real_jumpers[which] = (jumper)lookup_real(jumpers[which]);
	hidden_jump_taken(buffer);
	if (has_frames(thread_current)) {
		guard_jumped(arch_jump_sp(buffer));
		sample_jumped();
		frame_exits_jumped(arch_jump_sp(buffer));
		landings_cut(arch_jump_sp(buffer));
	}
	if (__atomic_load_n(&events_counts.jump_taken, __ATOMIC_RELAXED) > 0 &&
	    !RAISE_SOLE(jump_taken, buffer, arch_jump_sp(buffer)))
		raise_taken(buffer);
	real_jumpers[which](buffer, value);
}

EDGE __attribute__((noreturn)) void longjmp(void *buffer, int value);
EDGE __attribute__((noreturn)) void _longjmp(void *buffer, int value);
EDGE __attribute__((noreturn)) void siglongjmp(void *buffer, int value);
EDGE __attribute__((noreturn)) void __longjmp_chk(void *buffer, int value);

void longjmp(void *buffer, int value)
{
	jump(0, buffer, value);
}

void _longjmp(void *buffer, int value)
{
	jump(1, buffer, value);
}

void siglongjmp(void *buffer, int value)
{
	jump(2, buffer, value);
}

void __longjmp_chk(void *buffer, int value)
{
	jump(3, buffer, value);
}

/* --- coroutines --- */

static const char *const switchers[] = { "swapcontext", "setcontext" };
static void *real_switchers[2];
static void (*real_makecontext)(ucontext_t *context, void (*call)(void),
				int count, ...);

__attribute__((visibility("hidden"))) void *
edge_context_switched(ucontext_t *context, unsigned which);

/* Removes shim's signals from the mask of a context, which the program may have changed. */
static void unblock_hidden(ucontext_t *context)
{
	uint64_t *mask = (uint64_t *)&context->uc_sigmask;
	uint64_t ours = *mask & hidden_signals();

	if (ours == 0)
		return;
	*mask &= ~ours;
	hidden_block(hidden_blocked() | ours);
}

void *edge_context_switched(ucontext_t *context, unsigned which)
{
	if (!real_switchers[which])
		real_switchers[which] = lookup_real(switchers[which]);
	unblock_hidden(context);
	RAISE(stack_switched, ARCH_CONTEXT_SP(context));
	return real_switchers[which];
}

EDGE void makecontext(ucontext_t *context, void (*call)(void), int count, ...);

void makecontext(ucontext_t *context, void (*call)(void), int count, ...)
{
	uintptr_t low = (uintptr_t)context->uc_stack.ss_sp;
	long a[16] = { 0 };
	va_list arguments;

	if (!real_makecontext)
		real_makecontext = (void (*)(ucontext_t *, void (*)(void), int,
					     ...))lookup_real("makecontext");
	va_start(arguments, count);
	for (int i = 0; i < count && i < 16; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	sample_stack_created(context->uc_stack.ss_size);
	frame_exits_stack_created(low, low + context->uc_stack.ss_size);
	RAISE(stack_created, low, low + context->uc_stack.ss_size);
	real_makecontext(context, call, count, a[0], a[1], a[2], a[3], a[4],
			 a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
			 a[13], a[14], a[15]);
}

void edge_jump_resolve(void)
{
	for (unsigned i = 0; i < 3; i++)
		real_savers[i] = lookup_real(savers[i]);
	for (unsigned i = 0; i < 4; i++)
		real_jumpers[i] = (jumper)lookup_real(jumpers[i]);
	for (unsigned i = 0; i < 2; i++)
		real_switchers[i] = lookup_real(switchers[i]);
}
