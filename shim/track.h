/*
 * How frames are left, for profilers that ask: by a return, by a tail call, or
 * because they were unwound.  Each stack of a thread has a list of the frames
 * that are open on it (section 3.10); it is kept only while a plan needs it.
 */
#ifndef SHIM_TRACK_H
#define SHIM_TRACK_H

#include "plan.h"

/* As plan_run, for a plan that tracks. */
void track_run(const struct plan *plan, struct thread *self,
	       const struct plan_call *call);

/* The calling thread goes on at @sp of the stack that has it: frames below were
 * left by @exception, or by a jump (NULL).  @is_pad: at @sp a landing pad runs,
 * and leave hooks of that frame mean the same, until track_caught. */
void track_unwound(uintptr_t sp, const void *exception, bool is_pad);
void track_caught(void);

#endif
