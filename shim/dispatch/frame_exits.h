/*
 * The exits of frames, for profilers that want them: a return, a tail call, or
 * unwinding.  Each stack of a thread has a list of its open frames (section 3.10 of the
 * specification).  shim keeps the lists only while a plan needs them.
 */
#ifndef SHIM_FRAME_EXITS_H
#define SHIM_FRAME_EXITS_H

#include "dispatch/plan.h"

/* As plan_run, for a plan that tracks. */
void frame_exits_run(const struct plan *plan, struct thread *self,
		     const struct plan_call *call);

/* The calling thread continues at @sp, and @exception has ended the frames below (NULL:
 * another cause).  @is_pad: a landing pad runs at @sp.  Until frame_exits_caught, leave
 * hooks of that frame mean unwinding. */
void frame_exits_unwound(uintptr_t sp, const void *exception, bool is_pad);
/* A catch block begins; @sp is below it. */
void frame_exits_caught(uintptr_t sp);
/* The calling thread is about to jump to @sp. */
void frame_exits_jumped(uintptr_t sp);
/* The program has declared [@low, @high) as a stack. */
void frame_exits_stack_created(uintptr_t low, uintptr_t high);
/* All frames of the program on the calling thread's own stack have ended. */
void frame_exits_ended(void);

#endif
