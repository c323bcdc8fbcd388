/*
 * How frames are left, for profilers that ask: by a return, by a tail call, or
 * because they were unwound.  Each stack of a thread has a list of the frames
 * that are open on it (section 3.10); it is kept only while a plan needs it.
 */
#ifndef SHIM_FRAME_EXITS_H
#define SHIM_FRAME_EXITS_H

#include "dispatch/plan.h"

/* As plan_run, for a plan that tracks. */
void frame_exits_run(const struct plan *plan, struct thread *self,
	       const struct plan_call *call);

/* The calling thread goes on at @sp, and the frames below were left by
 * @exception (NULL: not one of C++).  @is_pad: what runs there is a landing
 * pad, and leave hooks of that frame mean the same until frame_exits_caught. */
void frame_exits_unwound(uintptr_t sp, const void *exception, bool is_pad);
/* A catch block begins; @sp is below it. */
void frame_exits_caught(uintptr_t sp);
/* The calling thread is about to jump to @sp. */
void frame_exits_jumped(uintptr_t sp);
/* [@low, @high) becomes a stack. */
void frame_exits_stack_created(uintptr_t low, uintptr_t high);
/* Nothing of the program is on the calling thread's own stack any more. */
void frame_exits_ended(void);

#endif
