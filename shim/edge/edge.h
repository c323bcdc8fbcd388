/*
 * For the files that stand between the program and libc (edge_*.c).
 */
#ifndef SHIM_EDGE_H
#define SHIM_EDGE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts all of shim: in the constructor, or with the first call of a hook if libc is
 * ready by then.  Once. */
void edge_start(void);
/* The profilers have started: calls of hooks from before are made again. */
void edge_early_again(void);

/* What each file looks up, in the constructor. */
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

/* In the constructor, when shim has started or is off. */
void edge_monitor_load(void);

/* How often the program has closed one: what was found may be gone. */
uint32_t edge_closes(void);

/* What libc allocates for the calling thread between the two is for us, such as the
 * text of what dlsym has not found. */
uintptr_t edge_allocations_hide(void);
void edge_allocations_show(uintptr_t before);

/* Profilers have been set up: are allocations told?  If not, and this was the last
 * chance, nothing of ours is in their way from now on. */
void edge_allocations_decide(bool is_last_chance);

/* The same of locks. */
void edge_locks_decide(bool is_last_chance);

/* main's thread begins.  A thread is about to unwind all of its stack.  The
 * calling thread has given itself a name. */
void edge_thread_main(void);
void edge_thread_unwinds(void);
void edge_thread_named(const char *name);

/* The process is about to end, and: nothing of the program will run but its
 * objects' destructors.  They raise the events and may be called again. */
void edge_shutdown_begins(void);
void edge_shutdown_ends(void);

/* The process is about to become another program, and: it has not. */
void edge_exec_ends(void);
void edge_exec_goes_on(void);

/* @set, or a copy of it without the signals that must not be blocked. */
const sigset_t *edge_signals_without(const sigset_t *set, sigset_t *copy);

/* Whether a profiler gets @signal (edge/caught_signals.c).  What the program sets for it, with
 * @set to have it done; and all that were asked for until now are caught. */
typedef int (*edge_action_setter)(int signal, const struct sigaction *action,
				  struct sigaction *before);
bool edge_asked_is(int signal);
int edge_asked_set(int signal, const struct sigaction *action,
		   struct sigaction *before, edge_action_setter set);
void edge_asked_load(void);

#define EDGE __attribute__((visibility("default")))

#endif
