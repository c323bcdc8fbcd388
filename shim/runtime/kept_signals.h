/*
 * Signals whose handler is shim's: SIGTRAP for traps (coverage/sigtrap.h) and SIGBUS
 * for holes (hole.h).  shim stores the handlers that the program sets for them, and
 * calls them for signals that shim has not caused.  runtime/hidden_signals.h stores
 * which of these signals the program blocks: the kernel would end a program that raises
 * a blocked SIGTRAP or SIGBUS.
 */
#ifndef SHIM_KEPT_SIGNALS_H
#define SHIM_KEPT_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

struct sys_action;

typedef void (*kept_handler)(int signal, siginfo_t *info, void *context);

/* The set of these signals. */
uint64_t kept_signals(void);
bool kept_is_on(int signal);

/* Installs shim's handler, which runs with all signals blocked except SIGTRAP and SIGBUS.
 * Returns 0 or -errno.  State lock held. */
int kept_start(int signal, kept_handler handler);
/* Restores the program's action.  State lock held. */
void kept_stop(int signal);

/* As sigaction, for one of these signals; @action and @before may be NULL. */
void kept_set(int signal, const struct sigaction *action,
	      struct sigaction *before);
/* As kept_set, with the kernel's struct; only @action may be NULL. */
void kept_swap(int signal, const struct sys_action *action,
	       struct sys_action *before);

/* For the handler: passes a signal to the program that a process has sent (si_code <=
 * 0), or that the processor has raised.  @again: the instruction that raised it will
 * run again. */
void kept_take_sent(int signal, siginfo_t *info, ucontext_t *context);
void kept_take_raised(int signal, siginfo_t *info, ucontext_t *context,
		      bool again);
/* Ends the program by @signal. */
void kept_end_program(int signal);

/* Before execve: the new program gets the actions that the program has set.  After a failed
 * execve: installs shim's handlers again. */
void kept_exec_begins(void);
void kept_exec_failed(void);

#endif
