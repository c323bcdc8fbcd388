/*
 * The sampler (<shim/sampling.h>).
 *
 * A thread's timer is created when shim first sees the thread, on that thread or on the
 * one that starts sampling.  It is deleted with the thread; a forked child has none.
 * All timers send one signal, which libc reserves for itself
 * (sampling/sample_signal.c).
 */
#ifndef SHIM_SAMPLE_H
#define SHIM_SAMPLE_H

#include "runtime/events.h"

#include <signal.h>

/* The signal of samples; 0 until it is chosen, once. */
extern int sample_signal __attribute__((visibility("hidden")));

/* The action that libc has set for that signal. */
extern struct sys_action sample_program_action
	__attribute__((visibility("hidden")));

/* Sets @handler for the signal.  @handler also gets the signals that the program and
 * libc send.  Returns 0 or -errno.  State lock held. */
int sample_signal_take(void *handler);
/* libc may have set its own action: sets the handler again. */
void sample_signal_keep(void);

/* Called around a change of the ids of all threads, for which libc signals each of
 * them.  sample_ids_change_begins returns whether the caller must call
 * sample_ids_change_ends. */
bool sample_ids_change_begins(void);
void sample_ids_change_ends(void);
/* The signals that a thread blocks while shim continues its system call. */
uint64_t sample_signal_rest_mask(void);
/* Called in a forked child. */
void sample_signal_forked(void);

/* Whether a profiler wants samples, or snapshots of other threads. */
bool sample_is_wanted(void);

/* Installs the signal for snapshots of other threads.  Returns 0, or -errno if no
 * signal is free.  State lock held. */
int sample_signal_want(void);

/* Called before the record of a thread is reused. */
void sample_thread_gone(struct thread *thread);
/* Called in a forked child, when the calling thread is the only one. */
void sample_forked(void);
/* Called in a forked child instead of sample_forked: the child is not sampled. */
void sample_give_up(void);
/* Called before coroutines run on stacks of @size bytes, which a signal may
 * overflow. */
void sample_stack_created(size_t size);
/* Called in a signal handler, after which the calling thread may continue on such a
 * stack. */
void sample_stack_after(ucontext_t *context);
/* Whether @low is the signal stack that shim gave the calling thread. */
bool sample_is_our_stack(const void *low);
/* Called when the calling thread is about to execute another program, and when execve
 * has failed. */
void sample_exec_begins(void);
void sample_exec_failed(void);
/* Blocks or unblocks the signal in the calling thread. */
void sample_signal_block(bool blocked);
/* Called when the calling thread is about to jump out of its frames. */
void sample_jumped(void);
/* Lets the threads that existed before shim was attached make their records, so that they
 * are sampled. */
void sample_adopt_threads(void);
/* Deletes all timers until the pause ends. */
void sample_pause(bool begins);
/* Deletes all timers.  After this, no system call may be made. */
void sample_stop(void);
/* Deletes all timers for ever, because of @reason.  The log has a line if there are any. */
void sample_end(const char *reason);
/* Does the work of shim_profiler_enable_sampling, at any time.  Returns 0 or -errno. */
int sample_enable(struct shim_profiler_handle *handle);
/*
 * Continues the system call that shim's signal has interrupted in @context, if there is one
 * and the kernel does not repeat it, as if the signal had not come; adds 1 to @count then.
 * The signal's handler calls this last: it may not return, and end the handler itself.  The
 * program's handlers may run meanwhile.  @is_real: signals come while the thread sleeps, too.
 */
void syscall_restart_call(struct thread *self, ucontext_t *context,
			  bool is_real, uint64_t *count);

/* Makes the program's handlers of @signal return through shim's restorer
 * (sampling/syscall_restart.c). */
void syscall_restart_watch_handlers_of(int signal);

/*
 * Called before and after the program sets the action of a signal: the sampler's handler
 * blocks the signals that the program handles, and watches its handlers.  One thread at a
 * time is between the two calls, with all signals blocked, if @is_alone.
 */
struct sample_action {
	int signal;
	const void *handler; /* SIG_ERR: as before */
	bool is_alone;
	uint64_t mask; /* for sample_action_end */
};
void sample_action_begin(struct sample_action *action);
void sample_action_end(const struct sample_action *action, bool is_set);

#endif
