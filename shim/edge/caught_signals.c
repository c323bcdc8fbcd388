/*
 * Catches the signals that profilers have enabled.  shim's handler has the flags and
 * the mask of the program's handler and calls that one last, by a jump, so that no
 * frame of shim is on the stack.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "edge/user_signals.h"
#include "runtime/events.h"

#include <errno.h>
#include <signal.h>

#include <shim/banned.h>

typedef void (*full_handler)(int signal, siginfo_t *info, void *context);

static uint64_t caught;		  /* bit N: signal N */
static struct sigaction kept[64]; /* what the program has set */

bool edge_asked_is(int signal)
{
	return signal > 0 && signal < 64 &&
	       (__atomic_load_n(&caught, __ATOMIC_ACQUIRE) & 1ull << signal);
}

static full_handler program_handler(int signal)
{
	void *call = *(void *volatile *)&kept[signal].sa_sigaction;

	if (call == (void *)SIG_DFL || call == (void *)SIG_IGN)
		return NULL;
	if (kept[signal].sa_flags & (int)SA_RESETHAND)
		*(void *volatile *)&kept[signal].sa_sigaction = (void *)SIG_DFL;
	/* A handler without SA_SIGINFO ignores the other two arguments. */
	return (full_handler)call;
}

static void handle(int signal, siginfo_t *info, void *context)
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
static struct sigaction ours_for(const struct sigaction *wanted)
{
	struct sigaction action = *wanted;

	if (wanted->sa_handler == SIG_IGN)
		return action;
	if (wanted->sa_handler == SIG_DFL)
		action.sa_flags |= SA_RESTART | SA_ONSTACK;
	action.sa_flags &= ~(int)SA_RESETHAND;
	action.sa_flags |= SA_SIGINFO;
	action.sa_sigaction = handle;
	return action;
}

/* A signal may arrive at any time, so the handler is stored last. */
static void keep(int signal, const struct sigaction *action)
{
	kept[signal].sa_flags = action->sa_flags;
	kept[signal].sa_mask = action->sa_mask;
	__atomic_store_n(&kept[signal].sa_sigaction, action->sa_sigaction,
			 __ATOMIC_RELEASE);
}

int edge_asked_set(int signal, const struct sigaction *action,
		   struct sigaction *before, edge_action_setter set)
{
	struct sigaction old = kept[signal], given;
	int result = 0;

	if (action) {
		given = ours_for(action);
		keep(signal, action);
		result = set(signal, &given, NULL);
	}
	if (result != 0)
		keep(signal, &old);
	else if (before)
		*before = old;
	return result;
}

static void establish(int signal)
{
	struct sigaction action;

	if (sigaction(signal, NULL, &action) != 0)
		return;
	keep(signal, &action);
	__atomic_fetch_or(&caught, 1ull << signal, __ATOMIC_RELEASE);
	sigaction(signal, &action, NULL);
}

void edge_asked_load(void)
{
	user_signals_load(establish);
}
