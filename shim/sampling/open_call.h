/* The system calls that threads are in when sampling begins (open_call.c). */
#ifndef SHIM_OPEN_CALL_H
#define SHIM_OPEN_CALL_H

#include "arch.h"
#include "runtime/thread.h"

#include <ucontext.h>

/* Notes the system calls that the threads are in now.  No signal of shim may interrupt them
 * yet: it would find no call meanwhile. */
void open_calls_note(void);

/* The number of @call, which has failed and whose code does not tell the number: that of the
 * noted call of the thread, if @call is this one; -1 otherwise. */
long open_call_number(const struct thread *self, const ucontext_t *context,
		      const struct arch_call *call);

#endif
