/*
 * Signals whose handler is shim's.  shim stores the handlers that the program sets for
 * them, and calls them for signals that shim has not caused.
 */
#include "runtime/kept_signals.h"

#include "arch.h"
#include "os/sys.h"
#include "runtime/hidden_signals.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <shim/banned.h>

static struct kept {
	int signal;
	bool is_on;
	kept_handler handler;
	struct sys_action program;
} kept_table[] = { { .signal = SIGTRAP }, { .signal = SIGBUS } };

static uint64_t kept_mask;

#define EACH(kept) \
	for (struct kept *kept = kept_table; \
	     kept < kept_table + sizeof(kept_table) / sizeof(*kept_table); \
	     kept++)

uint64_t kept_signals(void)
{
	return __atomic_load_n(&kept_mask, __ATOMIC_ACQUIRE);
}

bool kept_is_on(int signal)
{
	return signal > 0 && signal <= 64 &&
	       (kept_signals() & hidden_bit(signal));
}

static struct kept *find_kept(int signal)
{
	return &kept_table[signal != SIGTRAP];
}

static bool is_blocked(int signal)
{
	return hidden_blocked() & hidden_bit(signal);
}

static void set_blocked(int signal, bool blocked)
{
	hidden_block(blocked ? hidden_blocked() | hidden_bit(signal) :
			       hidden_blocked() & ~hidden_bit(signal));
}

/* --- on and off --- */

static bool has_handler(const struct sys_action *action)
{
	return action->handler != (void *)SIG_DFL &&
	       action->handler != (void *)SIG_IGN;
}

/* If the program has a handler for SIGBUS, its choice of SA_RESTART and SA_ONSTACK applies.
 * SIGTRAP always has both flags, because a thread may hit a trap on any stack. */
static uint64_t flags_for(const struct kept *kept)
{
	const uint64_t both = SA_RESTART | SA_ONSTACK;

	return kept->signal == SIGTRAP || !has_handler(&kept->program) ?
		       both :
		       kept->program.flags & both;
}

static int install_handler(const struct kept *kept, struct sys_action *before)
{
	struct sys_action action = {
		.handler = (void *)kept->handler,
		.flags = flags_for(kept) | SA_SIGINFO | SA_NODEFER |
			 ARCH_HAS_RESTORER,
		.restorer = arch_signal_return,
		/* Callbacks may hit traps, and holes in files. */
		.mask = ~(hidden_bit(SIGTRAP) | hidden_bit(SIGBUS)),
	};

	return sys_signal_action(kept->signal, &action, before);
}

int kept_start(int signal, kept_handler handler)
{
	struct kept *kept = find_kept(signal);
	int r;

	ASSERT_LOCKED();
	kept->handler = handler;
	kept->program = (struct sys_action){ .handler = NULL };
	r = install_handler(kept, &kept->program);
	if (r < 0)
		return r;
	sys_keep_open(kept_signals() | hidden_bit(signal));
	__atomic_fetch_or(&kept_mask, hidden_bit(signal), __ATOMIC_RELEASE);
	if (has_handler(&kept->program))
		install_handler(kept, NULL);
	return 0;
}

void kept_stop(int signal)
{
	ASSERT_LOCKED();
	__atomic_fetch_and(&kept_mask, ~hidden_bit(signal), __ATOMIC_RELEASE);
	sys_signal_action(signal, &find_kept(signal)->program, NULL);
	sys_keep_open(kept_signals());
}

/* --- the program's handlers --- */

static void store_action(struct kept *kept, const struct sys_action *action)
{
	uint64_t before = flags_for(kept);

	kept->program = *action;
	if (flags_for(kept) != before)
		install_handler(kept, NULL);
}

void kept_swap(int signal, const struct sys_action *action,
	       struct sys_action *before)
{
	*before = find_kept(signal)->program;
	if (action)
		store_action(find_kept(signal), action);
}

void kept_set(int signal, const struct sigaction *action,
	      struct sigaction *before)
{
	struct sys_action old = find_kept(signal)->program,
			  new = { .handler = NULL };

	if (action) {
		new.mask = hidden_as_kept(*(const uint64_t *)&action->sa_mask);
		new.flags = (uint64_t)action->sa_flags;
		new.handler = (void *)action->sa_handler;
		store_action(find_kept(signal), &new);
	}
	if (before) {
		*before = (struct sigaction){ .sa_flags = (int)old.flags };
		*(uint64_t *)&before->sa_mask = old.mask;
		before->sa_handler = (void (*)(int))old.handler;
	}
}

/* --- signals that are not shim's --- */

typedef void (*plain_handler)(int signal);

/* Runs the program's handler as the kernel would: blocks the signals that the action
 * blocks.  It leaves shim's signals unblocked, because the handler's code may raise
 * them. */
static void call_handler(int signal, const struct sys_action *action,
			 siginfo_t *info, ucontext_t *context)
{
	const uint64_t mask = *(uint64_t *)&context->uc_sigmask | action->mask;
	const struct sys_action none = { .handler = NULL };
	bool before = is_blocked(signal);

	if (action->flags & SA_RESETHAND)
		store_action(find_kept(signal), &none);
	set_blocked(signal, before || !(action->flags & SA_NODEFER) ||
				    (action->mask & hidden_bit(signal)));
	sys_set_signals(mask & ~kept_signals());
	if (action->flags & SA_SIGINFO)
		((kept_handler)action->handler)(signal, info, context);
	else
		((plain_handler)action->handler)(signal);
	set_blocked(signal, before);
}

void kept_end_program(int signal)
{
	struct sys_action none = { .handler = NULL };

	sys_signal_action(signal, &none, NULL);
	sys_signal_thread(signal);
	sys_block_signal(signal, false);
}

/* The program cannot block or ignore a signal that the processor has raised.  With @again,
 * the instruction runs again under the default action, so the core file has the signal's
 * cause. */
void kept_take_raised(int signal, siginfo_t *info, ucontext_t *context,
		      bool again)
{
	struct sys_action action = find_kept(signal)->program,
			  none = { .handler = NULL };

	if (has_handler(&action) && !is_blocked(signal))
		call_handler(signal, &action, info, context);
	else if (!again || sys_signal_action(signal, &none, NULL) < 0)
		kept_end_program(signal);
}

/* Leaves the signal pending and blocked.  It arrives when the thread unblocks it or
 * waits for it. */
static void keep_pending(int signal, siginfo_t *info, ucontext_t *context)
{
	*(uint64_t *)&context->uc_sigmask |= hidden_bit(signal);
	sys_block_signal(signal, true);
	sys_send_again(sys_gettid(), signal, info);
}

static bool is_own_thread(void)
{
	return thread_current && (thread_current->state & THREAD_OWN);
}

/* While shim has blocked all other signals, no handler of the program may run.  The signal
 * then arrives when shim restores the mask. */
void kept_take_sent(int signal, siginfo_t *info, ucontext_t *context)
{
	struct sys_action action = find_kept(signal)->program;

	if (is_own_thread()) {
		sys_send_again(sys_getpid(), signal, info);
	} else if (hidden_is_quiet(*(const uint64_t *)&context->uc_sigmask)) {
		keep_pending(signal, info, context);
	} else if (is_blocked(signal)) {
		hidden_pend(signal);
		if (signal == SIGBUS)
			keep_pending(signal, info, context);
	} else if (has_handler(&action)) {
		call_handler(signal, &action, info, context);
	} else if (action.handler == (void *)SIG_DFL) {
		kept_end_program(signal);
	}
}

/* --- exec --- */

static bool is_ignored(const struct kept *kept)
{
	return kept_is_on(kept->signal) &&
	       kept->program.handler == (void *)SIG_IGN;
}

void kept_exec_begins(void)
{
	EACH(kept)
	if (is_ignored(kept))
		sys_signal_action(kept->signal, &kept->program, NULL);
}

void kept_exec_failed(void)
{
	EACH(kept)
	if (is_ignored(kept))
		install_handler(kept, NULL);
}
