/*
 * What the files of edge/, which wrap libc functions, share.
 */
#ifndef SHIM_EDGE_H
#define SHIM_EDGE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts all of shim, once: in the constructor, or at the first call of a hook if libc
 * is ready by then. */
void edge_start(void);
/* Repeats the calls of hooks from before the profilers started. */
void edge_early_again(void);

/* Look up the libc functions of each file; called in the constructor. */
void edge_allocations_resolve(void);
void edge_exec_resolve(void);
void edge_images_resolve(void);
void edge_jump_resolve(void);
void edge_locks_resolve(void);
void edge_mappings_resolve(void);
void edge_monitor_resolve(void);
void edge_process_resolve(void);
void edge_signals_resolve(void);
void edge_thread_resolve(void);
void edge_waits_resolve(void);

/* Called in the constructor, when shim has started or is off. */
void edge_monitor_load(void);

/* The number of dlclose calls; a symbol found before the last one may be unmapped. */
uint32_t edge_closes(void);

/* Profilers have been set up: decides whether allocations raise events.  If none has
 * enabled them by the last chance, calls bypass the wrappers from now on. */
void edge_allocations_decide(bool is_last_chance);

/* The same for locks. */
void edge_locks_decide(bool is_last_chance);

/* The main thread begins.  The calling thread is about to unwind all of its stack.
 * The calling thread has named itself. */
void edge_thread_main(void);
void edge_thread_unwinds(void);
void edge_thread_named(const char *name);

/* The process is about to end.  Only destructors of the program's objects will still
 * run.  Both raise their event; further calls do nothing. */
void edge_shutdown_begins(void);
void edge_shutdown_ends(void);

/* The process is about to execute another program.  exec has failed. */
void edge_exec_ends(void);
void edge_exec_goes_on(void);

/* @set, or @copy without the signals that must not be blocked. */
const sigset_t *edge_signals_without(const sigset_t *set, sigset_t *copy);

/*
 * Signals that profilers have enabled (edge/caught_signals.c).  edge_asked_is: whether
 * @signal is one.  edge_asked_set: the program's sigaction for one; @set installs an
 * action in the kernel.  edge_asked_load: catches all that are enabled by now.
 */
typedef int (*edge_action_setter)(int signal, const struct sigaction *action,
				  struct sigaction *before);
bool edge_asked_is(int signal);
int edge_asked_set(int signal, const struct sigaction *action,
		   struct sigaction *before, edge_action_setter set);
void edge_asked_load(void);

#define EDGE __attribute__((visibility("default")))

#endif
