/*
 * The stack of another thread, which walks it itself: it is sent the sampler's
 * signal and writes what it finds where the one who asked can read it.  Nobody
 * waits for long: a thread that does not answer has its reasons.
 */
#ifndef SHIM_SNAPSHOT_H
#define SHIM_SNAPSHOT_H

#include "runtime/thread.h"
#include "unwind/unwind.h"

#include <shim/stack.h>
#include <ucontext.h>

/* What a walk reads of a ucontext_t; the kernel's are shorter than libc's. */
#define CONTEXT_SIZE_MIN \
	(offsetof(ucontext_t, uc_mcontext) + sizeof(mcontext_t))

struct snapshot_frame {
	shim_function function;
	uint32_t known;
	uintptr_t registers[WALK_REGISTERS];
};

struct snapshot_request {
	uint32_t state;		/* its turn << PHASE_BITS | enum phase */
	bool is_used;
	const struct thread *owner;
	shim_thread target;
	bool is_whole;		/* the walk came to the end */
	uint32_t count;
	struct snapshot_frame frames[SHIM_STACK_DEPTH_MAX];
};

/* Which calls a profiler knows to be open where @walk could not go on, on the
 * calling thread; true: the last of them has no caller. */
#define SNAPSHOT_CALLERS_MAX 128
bool snapshot_callers(const struct unwind *walk, shim_function *functions,
		      uint32_t room, uint32_t *count);

/* The signal's value when it is for this. */
extern char snapshot_value __attribute__((visibility("hidden")));

/* Before anybody has blocked all signals, if possible.  False: there is no signal
 * for it. */
bool snapshot_get_ready(void);

/* @id's stack in *@request, to be given back; or why there is none. */
enum shim_result snapshot_ask(struct thread *self, shim_thread id,
			      struct snapshot_request **request);
void snapshot_give_back(struct snapshot_request *request);

/* The calling thread, interrupted in @context by our signal: whoever has asked
 * gets its stack. */
void snapshot_answer(struct thread *self, const ucontext_t *context);

/* No more signals to the calling thread for this; and again. */
void snapshot_close(struct thread *self);
void snapshot_open(struct thread *self);

/* In a forked child, where nobody asks. */
void snapshot_forked(void);

#endif
