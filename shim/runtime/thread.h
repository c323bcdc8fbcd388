/*
 * The records of threads.  Other threads read from them which profiler's code a thread
 * runs.
 *
 * A thread gets its record when it begins (edge/thread.c) or when it first needs one.
 * Records are never unmapped, so a reader needs no lock.  shim reuses a record when its
 * task has ended.
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
	THREAD_CALLBACK = 1,  /* inside a callback, mapper or slow hook */
	THREAD_MAY_BLOCK = 2, /* this callback may call MAY_BLOCK functions */
	THREAD_INIT = 4,      /* inside a module's init function */
	THREAD_OWN = 8,	      /* a thread of a module or of shim */
	THREAD_ENDED = 16,    /* its last event was raised */
	THREAD_SHARED = 32,   /* another task uses the same thread-local data */
	THREAD_STARTED = 64,  /* its event thread_started was due */
	THREAD_STOPPING = 128, /* its event thread_stopping was due */
	THREAD_OURS = 256,   /* it works for shim, for example in the loader */
	THREAD_SIGNAL = 512, /* inside a callback that may interrupt anything */
};

/* In these states, a thread runs code of shim or of a profiler. */
#define THREAD_NOT_THE_PROGRAM \
	(THREAD_CALLBACK | THREAD_INIT | THREAD_OWN | THREAD_OURS | \
	 THREAD_SIGNAL)

/* The fields of struct thread that belong to the slow hook that the thread is in. */
struct hook_level {
	struct arch_frame *frame;
	struct values_space *values;
	struct results_space *results;
	char *callback_stack;
	bool on_callback_stack, is_hook_apart;
};

/* The depth of nested signal handlers with a slow hook in each. */
#define HOOK_LEVELS 3

struct thread {
	shim_thread id; /* 0: free */
	uint32_t tid;
	uint32_t state; /* of enum thread_state; written by its thread */
	struct arch_frame *frame; /* of the slow hook it is in, or NULL */
	uint32_t dispatching;	  /* the number of nested plans it is in */
	uintptr_t dispatch_sp;	  /* the stack pointer of the outermost */
	int *error;		  /* its errno */
	/* The stack pointers at which its stack has room for a profiler's code.  A
	 * size of 0 means no stack pointer, or an unknown range. */
	uintptr_t callback_room_low, callback_room_size;
	uintptr_t pthread;
	char name[16];
	struct guard *guard; /* the innermost callback on its stack */
	uintptr_t stack_low, stack_high; /* last seen, for callbacks */
	uintptr_t least_stack_low; /* the low end that the program has set */
	char *callback_stack; /* for callbacks if its stack has little room */
	bool on_callback_stack;
	bool is_hook_apart; /* the hook of @frame runs on @callback_stack */
	/* the owner, or the module whose init function it runs */
	struct module *module;
	struct track *tracks; /* open frames (dispatch/frame_exits.c) */
	struct track *track;  /* the list that was found last, or NULL */
	/* landings_count of them are used */
	struct landing landings[LANDINGS_MAX];
	/* the answer whose filter or mapper the thread runs, or NULL */
	struct filter_answer *pending_answer;
	uintptr_t pending_answer_sp; /* the stack pointer of that call */
	struct values_space *values; /* of its slow hooks */
	uint32_t hook_depth;	     /* of slow hooks in handlers (nested.h) */
	struct hook_level outer_levels[HOOK_LEVELS]; /* the interrupted ones */
	struct hook_level own_levels[HOOK_LEVELS]; /* of the handlers' hooks */
	uintptr_t contexts; /* the number of calls that callbacks were about */
	struct results_space *results; /* of its slow hooks */
	int timer, fine_timer; /* of sampling/sample_timers.c, if present */
	bool has_timer, has_fine_timer;
	bool is_fine; /* @fine_timer has the sampling period, and @timer is off */
	bool was_idle;	   /* at the last signal of a timer */
	uint64_t sleep_ns; /* the period of @fine_timer unless @is_fine */
	uint32_t sample_distance; /* that @fine_timer has if @is_fine */
	bool is_sample_soon; /* the next sample is wanted after one period */
	/* Its processor time at the last signal of a timer, and at the last sample that
	 * got a weight. */
	uint64_t sample_seen_ns, sample_counted_ns;
	/* The bounds of its own stack; 0: unknown. */
	uintptr_t own_stack_low, own_stack_high;
	uint32_t own_stack_tries;
	const void *sample_context; /* of the sample it is in */
	/* Processor time that its next sample leaves out (image/image_work.h). */
	uint64_t images_ns;
	/* The time that its samples took beyond their share, and the weight of the
	 * samples that were skipped to make up for it. */
	uint64_t sample_debt_ns;
	uint32_t sample_weight;
	char *signal_stack; /* made by shim, or NULL */
	/* odd: in a call that sampling/syscall_restart.c repeats */
	uint32_t rests;
	const void *rest_context; /* the context that the signal interrupted */
	uint64_t ticket;   /* requests for its stack (snapshot_remote.c) */
	bool is_signalled; /* the signal for @ticket was sent */
	bool is_watched;   /* edge/thread.c is notified of its end */
	/* The number of its open calls of a profiler's code, by handle. */
	uint16_t pins[SHIM_PROFILERS_MAX];
	/* The profilers' data for it, by handle (shim_thread_data). */
	void *data[SHIM_PROFILERS_MAX];
};

/* False if the bounds of its own stack are unknown. */
static inline bool thread_is_on_own_stack(const struct thread *thread,
					  uintptr_t sp)
{
	return sp - thread->own_stack_low <
	       thread->own_stack_high - thread->own_stack_low;
}

/* The calling thread's record, or NULL. */
extern __thread struct thread *thread_current
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* The calling thread's record; makes it if the thread has none.  NULL without memory.
 * Blocks signals and takes the state lock while it makes a record. */
struct thread *thread_get(void);

/* Makes the record of a thread of shim or of a module.  The thread calls it first: lists of
 * the program's threads never contain the thread. */
struct thread *thread_get_own(void);

/* Whether [@low, @high), found by shim_stack_find, is the stack that the calling thread was
 * created with.  In stack.c. */
bool stack_is_own(uintptr_t low, uintptr_t high);

/* Between these two calls, the calling thread works for shim: its allocations and locks
 * raise no events.  The calls nest: pass the result of the first to the second. */
bool thread_ours_begins(void);
void thread_ours_ends(bool before);

/* The record of @id, or NULL; sets *@has_been if a thread has or had this id. */
struct thread *thread_find(shim_thread id, bool *has_been);

/* shim is about to reuse a record: subscribers free their data of the last thread.  State
 * lock held. */
TOPIC(thread_reset, struct thread *thread);
/* The calling thread has got its record. */
TOPIC(thread_came, struct thread *thread);

/* Whether the task is a thread of shim or of a module. */
bool thread_is_own(uint32_t tid);

/* Calls each(thread, argument) for every record in use, until @each returns false.  False
 * if it did. */
bool thread_each(bool (*each)(struct thread *thread, void *argument),
		 void *argument);

/* In a forked child: frees the records of all threads but the calling one. */
void thread_forked(void);

/*
 * Waits until is_inside(thread, @number) has returned 0 once for every other thread.
 * Returns false after @timeout_ms (0: it checks once).  It begins with a barrier on all
 * threads, so a thread that enters later sees the caller's changes.
 */
bool thread_wait(uint32_t (*is_inside)(const struct thread *thread,
				       unsigned number),
		 unsigned number, uint32_t timeout_ms);

#endif
