/*
 * Snapshots of another thread's stack.  The caller sends the sampler's signal to the
 * target thread, which walks its own stack and writes the frames into the caller's
 * request.  The caller waits for a limited time: the target may be unable to answer.
 */
#ifndef SHIM_SNAPSHOT_H
#define SHIM_SNAPSHOT_H

#include "runtime/thread.h"
#include "unwind/unwind.h"

#include <shim/stack.h>
#include <ucontext.h>

/* The part of a ucontext_t that a walk reads; the kernel's is shorter than libc's. */
#define CONTEXT_SIZE_MIN \
	(offsetof(ucontext_t, uc_mcontext) + sizeof(mcontext_t))

struct snapshot_frame {
	shim_function function;
	uint32_t known;
	uintptr_t registers[WALK_REGISTERS];
};

struct snapshot_request {
	uint32_t state; /* its turn << PHASE_BITS | enum phase */
	bool is_used;	/* by the caller that took it */
	const struct thread *owner;
	shim_thread target;
	bool is_whole; /* the walk reached the outermost frame */
	uint32_t count;
	struct snapshot_frame frames[SHIM_STACK_DEPTH_MAX];
};

/* Begins a walk of the calling thread's stack at @context, at the interrupted context of a
 * sample, or at the caller of shim.  False if that is not possible. */
bool snapshot_begin(struct unwind *walk, struct thread *self,
		    const void *context);

/* Gets the open calls of the calling thread above the frame at which @walk has stopped,
 * from the profilers that track them.  True if the last call has no caller. */
#define SNAPSHOT_CALLERS_MAX 128
bool snapshot_callers(const struct unwind *walk, shim_function *functions,
		      uint32_t room, uint32_t *count);

/* The value of a signal for a snapshot. */
extern char snapshot_value __attribute__((visibility("hidden")));

/* Installs the signal.  A thread that blocked all signals before cannot be walked.
 * False if no signal is free. */
bool snapshot_get_ready(void);

/* Stores the stack of thread @id in *@request; the caller returns it with
 * snapshot_give_back.  Or returns an error. */
enum shim_result snapshot_ask(struct thread *self, shim_thread id,
			      struct snapshot_request **request);
void snapshot_give_back(struct snapshot_request *request);

/* Answers the request for the calling thread, which shim's signal has interrupted in
 * @context. */
void snapshot_answer(struct thread *self, const ucontext_t *context);

/* Forbid and allow requests to the calling thread. */
void snapshot_close(struct thread *self);
void snapshot_open(struct thread *self);

/* Called in a forked child, where no other thread has requests. */
void snapshot_forked(void);

#endif
