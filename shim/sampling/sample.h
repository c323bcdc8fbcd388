/*
 * The sampler (<shim/sampling.h>).
 *
 * A thread's timer is made when the thread is first seen, by itself or by whoever
 * starts sampling, and goes with it; a fork leaves none.  The signal is the
 * highest real-time signal that nobody had when sampling was enabled; what keeps
 * it from the program is in edge/signals.c.
 */
#ifndef SHIM_SAMPLE_H
#define SHIM_SAMPLE_H

#include "runtime/events.h"

#include <signal.h>

/* Ours, or 0; never changes again. */
extern int sample_signal __attribute__((visibility("hidden")));

/* What the program thinks it has set for that signal. */
extern struct sys_action sample_program_action
	__attribute__((visibility("hidden")));

/* Somebody wants samples, or snapshots of other threads. */
bool sample_is_wanted(void);

/* Snapshots of other threads are going to be asked for: there is the signal, as
 * for samples.  0, or -errno if there is none.  State lock held. */
int sample_signal_want(void);

/* The thread's record is going to have no thread. */
void sample_thread_gone(struct thread *thread);
/* In a forked child, when the calling thread is the only one. */
void sample_forked(void);
/* There, instead: it is not sampled. */
void sample_give_up(void);
/* Coroutines with stacks that a signal would overflow are about to run. */
void sample_stack_created(size_t size);
/* In a handler: the calling thread may go on with such a stack. */
void sample_stack_after(ucontext_t *context);
/* Whether @low is the signal stack that we gave the calling thread. */
bool sample_is_our_stack(const void *low);
/* The calling thread is about to execute another program; it could not. */
void sample_exec_begins(void);
void sample_exec_failed(void);
/* Keeps the signal from the calling thread for a while. */
void sample_signal_block(bool blocked);
/* The calling thread is about to jump out of its frames. */
void sample_jumped(void);
/* No system call may be made any more. */
void sample_stop(void);
/* shim_profiler_enable_sampling at any time: 0 or -EBUSY. */
int sample_enable(struct shim_profiler_handle *handle);
/*
 * Goes on with the system call that our signal has interrupted in @context, as
 * if there had been none; with all signals blocked.  Returns when it is done:
 * after the thread's sleep, where the program's handlers may run.
 */
bool syscall_restart_call(struct thread *self, ucontext_t *context);

/* The program's handlers are to return the way sampling/syscall_restart.c needs. */
void syscall_restart_watch_handlers_of(int signal);

/* Around setting one in more than one step. */
bool syscall_restart_set_begin(uint64_t *mask);
void syscall_restart_set_end(uint64_t mask);
/* In a forked child: whoever was between the two is not there. */
void syscall_restart_forked(void);

#endif
