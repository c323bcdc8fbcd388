/*
 * The sampler (<shim/sampling.h>).
 *
 * A thread's timer is created when shim first sees the thread, on that thread or on the
 * one that starts sampling.  It is deleted with the thread; a forked child has none.
 * Their signal is one that libc keeps for itself (sampling/sample_signal.c).
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

/* Sets @handler, which gets the program's and libc's signals, too.  Returns 0 or
 * -errno.  State lock held. */
int sample_signal_take(void *handler);
/* libc may have set its own action: sets the handler again. */
void sample_signal_keep(void);

/* Around a change of the ids of all threads, for which libc signals each of them.
 * sample_ids_change_begins returns whether sample_ids_change_ends is to be called. */
bool sample_ids_change_begins(void);
void sample_ids_change_ends(void);
/* The signals that a thread blocks while shim continues its system call. */
uint64_t sample_signal_rest_mask(void);
/* In a forked child. */
void sample_signal_forked(void);

/* Whether a profiler wants samples, or snapshots of other threads. */
bool sample_is_wanted(void);

/* Installs the signal for snapshots of other threads.  Returns 0, or -errno if no
 * signal is free.  State lock held. */
int sample_signal_want(void);

/* The record of the thread is about to be reused. */
void sample_thread_gone(struct thread *thread);
/* In a forked child, when the calling thread is the only one. */
void sample_forked(void);
/* In a forked child instead: it is not sampled. */
void sample_give_up(void);
/* Coroutines with stacks of @size bytes, which a signal may overflow, are about to
 * run. */
void sample_stack_created(size_t size);
/* In a signal handler: the calling thread may continue on such a stack. */
void sample_stack_after(ucontext_t *context);
/* Whether @low is the signal stack that shim gave the calling thread. */
bool sample_is_our_stack(const void *low);
/* The calling thread is about to execute another program; execve has failed. */
void sample_exec_begins(void);
void sample_exec_failed(void);
/* Blocks or unblocks the signal in the calling thread. */
void sample_signal_block(bool blocked);
/* The calling thread is about to jump out of its frames. */
void sample_jumped(void);
/* Deletes all timers: from now on no system call may be made. */
void sample_stop(void);
/* shim_profiler_enable_sampling at any time.  Returns 0 or -errno. */
int sample_enable(struct shim_profiler_handle *handle);
/*
 * Continues the system call that shim's signal has interrupted in @context, as if there
 * had been no signal.  Called in the signal's handler; meanwhile the program's handlers
 * may run.  Returns when the call is done, which may be after a long sleep; false if it
 * did nothing.
 */
bool syscall_restart_call(struct thread *self, ucontext_t *context);

/* Makes the program's handlers of @signal return as sampling/syscall_restart.c
 * needs. */
void syscall_restart_watch_handlers_of(int signal);

/* Around a change of a handler in more than one step. */
bool syscall_restart_set_begin(uint64_t *mask);
void syscall_restart_set_end(uint64_t mask);
/* In a forked child: a thread between the two does not exist there. */
void syscall_restart_forked(void);

#endif
