/*
 * Catches the signals that profilers have enabled.  shim's handler has the flags and
 * the mask of the program's handler.  Its last step is a jump to the program's handler,
 * so that no frame of shim is on the stack.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "edge/user_signals.h"
#include "runtime/events.h"

#include <errno.h>
#include <signal.h>

#include <shim/banned.h>

typedef void (*full_handler)(int signal, siginfo_t *info, void *context);

static uint64_t caught; /* bit N: signal N */
static struct sigaction
	program_actions[64]; /* the actions that the program has set */

bool edge_caught_is(int signal)
{
	return signal > 0 && signal < 64 &&
	       (__atomic_load_n(&caught, __ATOMIC_ACQUIRE) & 1ull << signal);
}

static full_handler program_handler(int signal)
{
	void *call = *(void *volatile *)&program_actions[signal].sa_sigaction;

	if (call == (void *)SIG_DFL || call == (void *)SIG_IGN)
		return NULL;
	if (program_actions[signal].sa_flags & (int)SA_RESETHAND)
		*(void *volatile *)&program_actions[signal].sa_sigaction =
			(void *)SIG_DFL;
	/* A handler without SA_SIGINFO ignores its second and third argument. */
	return (full_handler)call;
}

static void handle_signal(int signal, siginfo_t *info, void *context)
{
	int before = errno;
	full_handler next;

	RAISE(signalled, signal);
	errno = before;
	next = program_handler(signal);
	if (next)
		next(signal, info, context);
}

/* The action that the kernel gets instead of @wanted. */
static struct sigaction kernel_action(const struct sigaction *wanted)
{
	struct sigaction action = *wanted;

	if (wanted->sa_handler == SIG_IGN)
		return action;
	if (wanted->sa_handler == SIG_DFL)
		action.sa_flags |= SA_RESTART | SA_ONSTACK;
	action.sa_flags &= ~(int)SA_RESETHAND;
	action.sa_flags |= SA_SIGINFO;
	action.sa_sigaction = handle_signal;
	return action;
}

/* Stores the program's action.  The handler comes last, because a signal may arrive at
 * any time. */
static void store_action(int signal, const struct sigaction *action)
{
	program_actions[signal].sa_flags = action->sa_flags;
	program_actions[signal].sa_mask = action->sa_mask;
	__atomic_store_n(&program_actions[signal].sa_sigaction,
			 action->sa_sigaction, __ATOMIC_RELEASE);
}

int edge_caught_set(int signal, const struct sigaction *action,
		    struct sigaction *before, edge_action_setter set)
{
	struct sigaction old = program_actions[signal], given;
	int result = 0;

	if (action) {
		given = kernel_action(action);
		store_action(signal, action);
		result = set(signal, &given, NULL);
	}
	if (result != 0)
		store_action(signal, &old);
	else if (before)
		*before = old;
	return result;
}

static void catch_signal(int signal)
{
	struct sigaction action;

	if (sigaction(signal, NULL, &action) != 0)
		return;
	store_action(signal, &action);
	__atomic_fetch_or(&caught, 1ull << signal, __ATOMIC_RELEASE);
	sigaction(signal, &action, NULL);
}

void edge_caught_load(void)
{
	user_signals_load(catch_signal);
}
