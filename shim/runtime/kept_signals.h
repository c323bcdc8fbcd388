/*
 * Signals whose handler is ours: the trap's (coverage/sigtrap.h) and that of holes
 * (hole.h).  What the program sets for them is kept here, and used when one
 * comes that is not ours. What it blocks is remembered (runtime/hidden_signals.h): the kernel
 * ends a program that blocks a signal and does what raises it.
 */
#ifndef SHIM_KEPT_SIGNALS_H
#define SHIM_KEPT_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

struct sys_action;

typedef void (*kept_handler)(int signal, siginfo_t *info, void *context);

/* As a set: those that have one. */
uint64_t kept_signals(void);
bool kept_is_on(int signal);

/* State lock held.  0 or -errno.  The handler runs with all others blocked. */
int kept_start(int signal, kept_handler handler);
void kept_stop(int signal);

/* What sigaction does for one of them; either may be NULL.  And as the kernel
 * has it. */
void kept_set(int signal, const struct sigaction *action,
	      struct sigaction *before);
void kept_swap(int signal, const struct sys_action *action,
	       struct sys_action *before);

/* In the handler: one that somebody has sent (its code is not above 0), and one
 * that the processor has raised; @again: the instruction that did it will run
 * again. */
void kept_take_sent(int signal, siginfo_t *info, ucontext_t *context);
void kept_take_raised(int signal, siginfo_t *info, ucontext_t *context,
		      bool again);
/* The program ends by it. */
void kept_end_program(int signal);

/* The calling thread is about to execute another program, which is to find them
 * as the program would have left them; it could not. */
void kept_exec_begins(void);
void kept_exec_failed(void);

#endif
