/*
 * Signals whose handler is shim's: that of traps (coverage/sigtrap.h) and that of
 * holes (hole.h).  shim stores the handlers that the program sets for them, and calls
 * them for signals that are not shim's.
 * runtime/hidden_signals.h stores what the program blocks: the kernel would end
 * a program that raises a blocked SIGTRAP or SIGBUS.
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

/* State lock held.  Returns 0 or -errno.  The handler runs with all
 * signals blocked except SIGTRAP and SIGBUS. */
int kept_start(int signal, kept_handler handler);
void kept_stop(int signal);

/* sigaction for one of these signals; @action and @before may be NULL.
 * kept_swap takes the kernel's struct. */
void kept_set(int signal, const struct sigaction *action,
	      struct sigaction *before);
void kept_swap(int signal, const struct sys_action *action,
	       struct sys_action *before);

/* In the handler: passes on a signal that was sent (si_code <= 0), or that
 * the processor raised.  @again: the instruction that raised it will run
 * again. */
void kept_take_sent(int signal, siginfo_t *info, ucontext_t *context);
void kept_take_raised(int signal, siginfo_t *info, ucontext_t *context,
		      bool again);
/* Ends the program by @signal. */
void kept_end_program(int signal);

/* Around execve in the calling thread: the new program gets the signals as
 * the program has set them; if execve fails, shim's handlers return. */
void kept_exec_begins(void);
void kept_exec_failed(void);

#endif
