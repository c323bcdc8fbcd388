/*
 * The threads we have met, each with what others must be able to read of it:
 * whose code it is in.
 *
 * A thread gets its record when it begins (edge/thread.c) or when it is first
 * needed.  Records are never unmapped, so a reader needs no lock; one is used
 * again when its task is gone.
 */
#ifndef SHIM_THREAD_H
#define SHIM_THREAD_H

#include "runtime/landings.h"
#include "runtime/subscribe.h"

#include <shim/profiler.h>
#include <stdbool.h>

struct guard;
struct arch_frame;
struct module;
struct track;
struct results_space;
struct values_space;
struct filter_answer;

enum thread_state {
	THREAD_CALLBACK = 1,	/* inside a callback, mapper or slow hook ... */
	THREAD_MAY_BLOCK = 2,	/* ... that may do what takes time */
	THREAD_INIT = 4,	/* inside a module's init function */
	THREAD_OWN = 8,		/* a thread of a module or of ours */
	THREAD_ENDED = 16,	/* its last event was raised */
	THREAD_SHARED = 32,	/* another task uses the same thread-local data */
	THREAD_STARTED = 64,	/* its thread_started was due ... */
	THREAD_STOPPING = 128,	/* ... and its thread_stopping */
	THREAD_OURS = 256,	/* the loader does something for us */
	THREAD_SIGNAL = 512,	/* inside a callback that may interrupt anything */
};

/* What a thread in one of these states does is not what the program does. */
#define THREAD_NOT_THE_PROGRAM \
	(THREAD_CALLBACK | THREAD_INIT | THREAD_OWN | THREAD_OURS | \
	 THREAD_SIGNAL)

/* What belongs to the slow hook that a thread is in. */
struct hook_level {
	struct arch_frame *frame;
	struct values_space *values;
	struct results_space *results;
	char *callback_stack;
	bool on_callback_stack, is_hook_apart;
};

/* Handlers in each other, each with a slow hook in it. */
#define HOOK_LEVELS 3

struct thread {
	shim_thread id;		/* 0: free */
	uint32_t tid;
	uint32_t state;		/* of enum thread_state; its own thread writes */
	struct arch_frame *frame;	/* it is in that slow hook */
	uint32_t dispatching;	/* how deep it is in plans ... */
	uintptr_t dispatch_sp;	/* ... and where the outermost began */
	int *error;		/* its errno */
	/* Where its stack pointer is if a profiler's code may run right there; a
	 * size of 0: nowhere, or not known yet. */
	uintptr_t roomy_low, roomy_size;
	uintptr_t pthread;
	char name[16];
	struct guard *guard;	/* the innermost callback on its stack */
	uintptr_t stack_low, stack_high;	/* last seen, for callbacks */
	uintptr_t least_stack_low;	/* of its own, as the program wanted it */
	char *callback_stack;	/* for callbacks where there is little of it */
	bool on_callback_stack;
	bool is_hook_apart;	/* what runs there is the hook of @frame */
	struct module *module;	/* whose init function it runs */
	struct track *tracks;	/* the frames it is in (dispatch/frame_exits.c); ... */
	struct track *track;	/* ... where they were found last, or NULL */
	struct landing landings[LANDINGS_MAX];	/* as many as landings_count says */
	struct filter_answer *asking;	/* it is in a filter or mapper, about that ... */
	uintptr_t asking_sp;	/* ... from there */
	struct values_space *values;	/* what its slow hooks were told */
	uint32_t hook_depth;	/* of slow hooks in handlers (nested.h) */
	struct hook_level outer_levels[HOOK_LEVELS];	/* what they interrupted */
	struct hook_level own_levels[HOOK_LEVELS];	/* what they have */
	uintptr_t contexts;	/* how many calls callbacks were told of */
	struct results_space *results;	/* ... of results */
	int timer;		/* of sample.c, if has_timer */
	bool has_timer;
	/* Its stack from the system, when it is known; 0: not yet. */
	uintptr_t own_stack_low, own_stack_high;
	uint32_t own_stack_tries;
	const void *sample_context;	/* of the sample it is in */
	/* What its samples have taken beyond their share, and the weight of those
	 * that were left out for it. */
	uint64_t sample_debt_ns;
	uint32_t sample_weight;
	char *signal_stack;	/* ours, if it ever needed one */
	uint32_t rests;		/* odd: in a call that sampling/syscall_restart.c goes on with ... */
	const void *rest_context;	/* ... which was interrupted there */
	uint64_t asked;		/* who wants its stack: sampling/snapshot_remote.c */
	bool is_signalled;	/* the signal for that is under way */
	bool is_watched;	/* edge/thread.c hears of its end */
	uint32_t dropped;	/* calls made by slow hooks: not events */
	/* How often it is in the code of a profiler, by handle. */
	uint16_t pins[SHIM_PROFILERS_MAX];
	/* What profilers keep for it, by handle (shim_thread_data). */
	void *data[SHIM_PROFILERS_MAX];
};

/* The calling thread's record, or NULL. */
extern __thread struct thread *thread_current
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* The calling thread's record, made if there is none; NULL if there is no room.
 * Blocks signals and takes the state lock when it makes one. */
struct thread *thread_get(void);

/* The same of a thread of ours or of a module, with its first instruction: it is
 * never one of the program's, for nobody who lists them. */
struct thread *thread_get_own(void);

/* stack.c: whether [@low, @high), which shim_stack_find has found, is the stack that
 * the calling thread was made with. */
bool stack_is_own(uintptr_t low, uintptr_t high);

/* What the calling thread does from here on is done for us: profilers are not told
 * of its allocations and locks.  What it gives goes back to thread_ours_ends. */
bool thread_ours_begins(void);
void thread_ours_ends(bool before);

/* The record of @id, or NULL and whether there was such a thread. */
struct thread *thread_find(shim_thread id, bool *has_been);

/* A record is about to belong to another thread: what was kept for the last one goes.
 * State lock held. */
TOPIC(thread_reset, struct thread *thread);
/* The calling thread has got its record. */
TOPIC(thread_came, struct thread *thread);

/* Whether the task is a thread of ours or of a module. */
bool thread_is_own(uint32_t tid);

/* Calls each(thread, argument) for every record in use, until false. */
bool thread_each(bool (*each)(struct thread *thread, void *argument),
		 void *argument);

/* In a forked child: only the calling thread is left. */
void thread_forked(void);

/*
 * Waits until every other thread was seen outside: a count that is_inside reads
 * was 0 once.  Gives up after @timeout_ms (0: looks once); tells whether it
 * succeeded.  Whoever enters from now on must find what the caller has changed:
 * this begins with a barrier on all threads.
 */
bool thread_wait(uint32_t (*is_inside)(const struct thread *thread,
				       unsigned number),
		 unsigned number, uint32_t timeout_ms);

#endif
