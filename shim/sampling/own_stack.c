/*
 * Lets a handler that runs on the signal stack go on on the stack that it has interrupted.
 *
 * While shim continues a system call of the program, handlers of the program run above shim's,
 * perhaps for hours.  On a signal stack, they would have less room than the program
 * has planned for them.  Collectors of garbage read the stack of a thread from the stack
 * pointer that their signal has found, up to the thread's first frame, so it must be on
 * the same stack.
 *
 * The frame that the kernel has made for the handler is copied there.  The kernel takes
 * the frame at which the stack pointer is when the handler returns.
 */
#include "sampling/own_stack.h"

#include "arch.h"
#include "os/sys.h"
#include "unwind/unwind.h"

#include <shim/banned.h>

/* The stack of a thread of libc; others may be small (sampling/sample.c). */
#define ROOM_LEAST (64ul << 10)
#define RED_ZONE   128

void own_stack_go_on(struct thread *self, const ucontext_t *context,
		     const void *argument, size_t size,
		     void (*function)(void *context, const void *argument))
{
	uintptr_t sp = ARCH_CONTEXT_SP(context);
	void *copy;
	uintptr_t at;

	unwind_find_own_stack(self, sp);
	if (thread_is_on_own_stack(self, (uintptr_t)context) ||
	    !thread_is_on_own_stack(self, sp) ||
	    sp - self->own_stack_low < ROOM_LEAST || sys_has_shadow_stack())
		return;
	at = (sp - RED_ZONE - size) & ~15ul;
	copy = arch_copy_frame(context, at, sys_peek);
	if (copy && sys_peek(argument, (void *)at, size) == 0)
		arch_go_on(copy, (const void *)at, function);
}
