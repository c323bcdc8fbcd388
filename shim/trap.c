#include "trap.h"

#include "arch.h"
#include "coverage.h"
#include "hidden.h"
#include "sample.h"
#include "state.h"
#include "sys.h"

#include <errno.h>
#include <ucontext.h>

#include <shim/banned.h>

#define TRAP_BIT (1ull << (SIGTRAP - 1))

enum { NEVER, ON, STOPPED };

static int status;
static struct sys_action program_action;

bool trap_is_on(void)
{
	return __atomic_load_n(&status, __ATOMIC_ACQUIRE) == ON;
}

static bool is_blocked(void)
{
	return hidden_blocked() & TRAP_BIT;
}

static void block(bool blocked)
{
	hidden_block(blocked ? hidden_blocked() | TRAP_BIT :
			       hidden_blocked() & ~TRAP_BIT);
}

/* --- the program's --- */

void trap_swap_action(const struct sys_action *action, struct sys_action *before)
{
	*before = program_action;
	if (action)
		program_action = *action;
}

void trap_set_action(const struct sigaction *action, struct sigaction *before)
{
	struct sys_action old = program_action;

	if (action) {
		program_action.mask =
			hidden_as_kept(*(const uint64_t *)&action->sa_mask);
		program_action.flags = (uint64_t)action->sa_flags;
		program_action.handler = (void *)action->sa_handler;
	}
	if (before) {
		*before = (struct sigaction){ .sa_flags = (int)old.flags };
		*(uint64_t *)&before->sa_mask = old.mask;
		before->sa_handler = (void (*)(int))old.handler;
	}
}

/* --- one that is not ours --- */

typedef void (*plain_handler)(int signal);
typedef void (*full_handler)(int signal, siginfo_t *info, void *context);

/* As the kernel would have begun it: with what it blocks, but for the signal
 * itself, which code of the handler may need. */
static void call_handler(const struct sys_action *action, siginfo_t *info,
			 ucontext_t *context)
{
	uint64_t mask = *(uint64_t *)&context->uc_sigmask | action->mask;
	bool before = is_blocked();

	if (action->flags & SA_RESETHAND)
		program_action = (struct sys_action){ .handler = NULL };
	block(before || !(action->flags & SA_NODEFER) ||
	      (action->mask & TRAP_BIT));
	sys_restore_signals(mask & ~TRAP_BIT);
	if (action->flags & SA_SIGINFO)
		((full_handler)action->handler)(SIGTRAP, info, context);
	else
		((plain_handler)action->handler)(SIGTRAP);
	block(before);
}

/* The program's own end, by the signal. */
static void end_program(void)
{
	struct sys_action none = { .handler = NULL };

	sys_signal_action(SIGTRAP, &none, NULL);
	sys_signal_thread(SIGTRAP);
	sys_block_signal(SIGTRAP, false);
}

static void hand_on(siginfo_t *info, ucontext_t *context)
{
	struct sys_action action = program_action;
	bool is_sent = info->si_code <= 0;

	if (is_sent && is_blocked())
		hidden_pend(SIGTRAP);
	else if (is_sent && action.handler == (void *)SIG_IGN)
		return;
	/* What the processor says cannot be blocked or ignored. */
	else if (action.handler == (void *)SIG_DFL ||
		 action.handler == (void *)SIG_IGN || is_blocked())
		end_program();
	else
		call_handler(&action, info, context);
}

/* Where we have blocked all other signals nobody of the program is to run: it comes
 * when that is over. */
static void put_off(siginfo_t *info, ucontext_t *context)
{
	*(uint64_t *)&context->uc_sigmask |= TRAP_BIT;
	sys_send_again(sys_gettid(), SIGTRAP, info);
}

static void take_sent(siginfo_t *info, ucontext_t *context)
{
	if (thread_current && (thread_current->state & THREAD_OWN))
		sys_send_again(sys_getpid(), SIGTRAP, info);
	else if (hidden_is_quiet(*(const uint64_t *)&context->uc_sigmask))
		put_off(info, context);
	else
		hand_on(info, context);
}

static void handle(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	uintptr_t address = ARCH_CONTEXT_IP(interrupted) - ARCH_TRAP_SIZE;

	(void)signal;
	sample_stack_after(interrupted);
	if (info->si_code <= 0) {
		take_sent(info, interrupted);
		return;
	}
	switch (coverage_take(address)) {
	case COVERAGE_TAKEN: ARCH_TRAP_GO_BACK(interrupted); return;
	case COVERAGE_STUCK: end_program(); return;
	case COVERAGE_NOT_OURS: break;
	}
	if (!coverage_take_loader(address, interrupted))
		hand_on(info, interrupted);
}

/* --- on and off --- */

static int install(void *unused)
{
	struct sys_action action = {
		.handler = (void *)handle,
		.flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER |
			 ARCH_HAS_RESTORER,
		.restorer = arch_signal_return,
		/* Callbacks have lines, too. */
		.mask = ~TRAP_BIT,
	};

	(void)unused;
	if (status != NEVER)
		return 0;
	if (sys_signal_action(SIGTRAP, &action, &program_action) < 0)
		return -EBUSY;
	sys_keep_open(TRAP_BIT);
	__atomic_store_n(&status, ON, __ATOMIC_RELEASE);
	return 0;
}

bool trap_start(void)
{
	uint64_t mask;

	if (trap_is_on())
		return true;
	/* It may have begun with the signal blocked. */
	if (sys_unblock_signals(0, &mask) < 0)
		return false;
	state_slowly(install, NULL);
	if (!trap_is_on())
		return false;
	if (hidden_thread_begins(mask) == 0)
		return true;
	trap_stop();
	return false;
}

static int uninstall(void *unused)
{
	(void)unused;
	if (status != ON)
		return -1;
	sys_signal_action(SIGTRAP, &program_action, NULL);
	sys_keep_open(0);
	__atomic_store_n(&status, STOPPED, __ATOMIC_RELEASE);
	return 0;
}

bool trap_stop(void)
{
	bool stopped = state_slowly(uninstall, NULL) == 0;

	if (stopped && is_blocked())
		sys_block_signal(SIGTRAP, true);
	if (stopped && (hidden_pending() & TRAP_BIT))
		sys_signal_thread(SIGTRAP);
	return stopped;
}

void trap_exec_begins(void)
{
	if (!trap_is_on())
		return;
	if (program_action.handler == (void *)SIG_IGN)
		sys_signal_action(SIGTRAP, &program_action, NULL);
}

static int install_again(void *unused)
{
	struct sys_action kept = program_action;
	int r;

	status = NEVER;
	r = install(unused);
	program_action = kept;
	return r;
}

void trap_exec_failed(void)
{
	if (!trap_is_on())
		return;
	if (program_action.handler == (void *)SIG_IGN)
		state_slowly(install_again, NULL);
}
