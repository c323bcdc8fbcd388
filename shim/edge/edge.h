/*
 * Functions that the files of edge/ share.  Each file wraps functions of libc.
 */
#ifndef SHIM_EDGE_H
#define SHIM_EDGE_H

#include <shim/format.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts shim, once: in the constructor, or at the first call of a hook if libc is ready by
 * then. */
void edge_start(void);
/* The last steps of the start: before main, or at the end of an attach. */
void edge_finish_start(void);
/* Repeats the calls of hooks that came before the profilers started. */
void edge_early_again(void);

/* Each looks up the libc functions of one file.  Called in the constructor. */
void edge_allocations_resolve(void);
void edge_exec_resolve(void);
void edge_images_resolve(void);
void edge_jump_resolve(void);
void edge_left_out_resolve(void);
void edge_locks_resolve(void);
void edge_mappings_resolve(void);
void edge_monitor_resolve(void);
void edge_process_resolve(void);
void edge_signals_resolve(void);
void edge_thread_resolve(void);
void edge_waits_resolve(void);

/* Starts monitor(3).  Called in the constructor, after shim has started or is off. */
void edge_monitor_load(void);

/* The number of dlclose calls.  A symbol found before the last call may be unmapped. */
uint32_t edge_closes(void);

/* Called after profilers have been set up: decides whether allocations raise events.  If no
 * profiler has enabled them by the last chance, calls bypass the wrappers. */
void edge_allocations_decide(bool is_last_chance);

/* Does the same for locks. */
void edge_locks_decide(bool is_last_chance);

/* Whether the caller is a child of vfork, which runs with its parent's memory. */
bool edge_is_vfork_child(void);

/* The main thread begins. */
void edge_thread_main(void);
/* The calling thread is about to unwind all of its stack. */
void edge_thread_unwinds(void);
/* The calling thread has set its own name. */
void edge_thread_named(const char *name);

/* Whether the calling thread is in a hook that the frame with this instruction pointer and
 * canonical frame address, or one of its callees, has called.  Takes the state lock. */
bool edge_runs_hook(uintptr_t ip, uintptr_t cfa);

/* The program @name is executed with @environment, or will be: the log tells if shim is not
 * loaded into it.  @directory is that of executed_find.  Returns whether the program must not
 * see shim in LD_PRELOAD (executed_without_shim). */
bool edge_leave_out(int directory, const char *name, char *const environment[]);

/* The process is about to end.  Raises runtime_shutdown_begin once. */
void edge_shutdown_begins(void);
/* Only destructors of the program's objects will still run.  Raises runtime_shutdown_end
 * once. */
void edge_shutdown_ends(void);
/* Writes into the recording how the process ends. */
void edge_write_end(enum shim_end end, int status);

/* The process is about to execute another program. */
void edge_exec_ends(void);
/* exec has failed. */
void edge_exec_goes_on(void);
/* The child of the calling thread's vfork has executed a program, or ended. */
void edge_exec_vforked(void);

/* Returns @set; or @copy, filled with @set without shim's signals, if @set has any. */
const sigset_t *edge_signals_without(const sigset_t *set, sigset_t *copy);

/* Signals that profilers have enabled (edge/caught_signals.c). */
typedef int (*edge_action_setter)(int signal, const struct sigaction *action,
				  struct sigaction *before);
/* Whether shim catches @signal for a profiler. */
bool edge_caught_is(int signal);
/* The program's sigaction for such a signal.  @set installs an action in the kernel. */
int edge_caught_set(int signal, const struct sigaction *action,
		    struct sigaction *before, edge_action_setter set);
/* Catches all signals that are enabled now. */
void edge_caught_load(void);

#define EDGE __attribute__((visibility("default")))

#endif
