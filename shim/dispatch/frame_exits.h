/*
 * How frames are left, for profilers that want it: by a return, by a tail call, or by
 * unwinding.  Each stack of a thread has a list of its open frames (section 3.10),
 * which is kept only while a plan needs it.
 */
#ifndef SHIM_FRAME_EXITS_H
#define SHIM_FRAME_EXITS_H

#include "dispatch/plan.h"

/* As plan_run, for a plan that tracks. */
void frame_exits_run(const struct plan *plan, struct thread *self,
		     const struct plan_call *call);

/* The calling thread continues at @sp; the frames below were left by @exception
 * (NULL: none of C++).  @is_pad: a landing pad runs there, and leave hooks of that
 * frame mean unwinding until frame_exits_caught. */
void frame_exits_unwound(uintptr_t sp, const void *exception, bool is_pad);
/* A catch block begins; @sp is below it. */
void frame_exits_caught(uintptr_t sp);
/* The calling thread is about to jump to @sp. */
void frame_exits_jumped(uintptr_t sp);
/* The program has declared [@low, @high) as a stack. */
void frame_exits_stack_created(uintptr_t low, uintptr_t high);
/* All frames of the program on the calling thread's own stack are gone. */
void frame_exits_ended(void);

#endif
