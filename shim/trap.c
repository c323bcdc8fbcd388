#include "trap.h"

#include "arch.h"
#include "coverage.h"
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
static uint64_t masking;	/* the handlers that run with it blocked, a bit each */

static __thread bool is_blocked, is_pending;

bool trap_is_on(void)
{
	return __atomic_load_n(&status, __ATOMIC_ACQUIRE) == ON;
}

/* --- the program's --- */

bool trap_is_blocked(void)
{
	return is_blocked;
}

bool trap_is_pending(void)
{
	return is_pending;
}

void trap_block(bool blocked)
{
	is_blocked = blocked;
	if (!blocked && is_pending) {
		is_pending = false;
		sys_signal_thread(SIGTRAP);
	}
}

bool trap_masks_handler(int signal)
{
	return __atomic_load_n(&masking, __ATOMIC_RELAXED) >> (signal - 1) & 1;
}

bool trap_mask_handler(int signal, bool blocked)
{
	uint64_t bit = 1ull << (signal - 1);
	uint64_t before = blocked ?
				  __atomic_fetch_or(&masking, bit,
						    __ATOMIC_RELAXED) :
				  __atomic_fetch_and(&masking, ~bit,
						     __ATOMIC_RELAXED);

	return before & bit;
}

void trap_set_action(const struct sigaction *action, struct sigaction *before)
{
	struct sys_action old = program_action;

	if (action) {
		program_action.mask = *(const uint64_t *)&action->sa_mask;
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
	bool before = is_blocked;

	if (action->flags & SA_RESETHAND)
		program_action = (struct sys_action){ .handler = NULL };
	is_blocked = before || !(action->flags & SA_NODEFER) ||
		     (action->mask & TRAP_BIT);
	sys_restore_signals(mask & ~TRAP_BIT);
	if (action->flags & SA_SIGINFO)
		((full_handler)action->handler)(SIGTRAP, info, context);
	else
		((plain_handler)action->handler)(SIGTRAP);
	trap_block(before);
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

	if (is_sent && is_blocked)
		is_pending = true;
	else if (is_sent && action.handler == (void *)SIG_IGN)
		return;
	/* What the processor says cannot be blocked or ignored. */
	else if (action.handler == (void *)SIG_DFL ||
		 action.handler == (void *)SIG_IGN || is_blocked)
		end_program();
	else
		call_handler(&action, info, context);
}

static void handle(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	uintptr_t address = ARCH_CONTEXT_IP(interrupted) - ARCH_TRAP_SIZE;

	(void)signal;
	sample_stack_after(interrupted);
	if (info->si_code > 0 && coverage_take(address))
		ARCH_TRAP_GO_BACK(interrupted);
	else if (info->si_code <= 0 ||
		 !coverage_take_loader(address, interrupted))
		hand_on(info, interrupted);
}

/* --- on and off --- */

static int install(void *unused)
{
	struct sys_action action = {
		.handler = (void *)handle,
		.flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK |
			 ARCH_HAS_RESTORER,
		.restorer = arch_signal_return,
		.mask = ~0ull,
	};

	(void)unused;
	if (status != NEVER)
		return 0;
	if (sys_signal_action(SIGTRAP, &action, &program_action) < 0)
		return -EBUSY;
	__atomic_store_n(&status, ON, __ATOMIC_RELEASE);
	return 0;
}

void trap_adopt(void)
{
	uint64_t mask;

	if (sys_block_signals(&mask) == 0) {
		is_blocked = mask & TRAP_BIT;
		sys_restore_signals(mask & ~TRAP_BIT);
	}
}

bool trap_start(void)
{
	if (trap_is_on())
		return true;
	state_slowly(install, NULL);
	if (!trap_is_on())
		return false;
	/* It may have begun with the signal blocked. */
	trap_adopt();
	return true;
}

static int uninstall(void *unused)
{
	(void)unused;
	if (status != ON)
		return -1;
	sys_signal_action(SIGTRAP, &program_action, NULL);
	__atomic_store_n(&status, STOPPED, __ATOMIC_RELEASE);
	return 0;
}

bool trap_stop(void)
{
	bool stopped = state_slowly(uninstall, NULL) == 0;

	if (stopped && is_blocked)
		sys_block_signal(SIGTRAP, true);
	if (stopped && is_pending)
		sys_signal_thread(SIGTRAP);
	return stopped;
}

void trap_exec_begins(void)
{
	if (!trap_is_on())
		return;
	if (program_action.handler == (void *)SIG_IGN)
		sys_signal_action(SIGTRAP, &program_action, NULL);
	if (is_blocked)
		sys_block_signal(SIGTRAP, true);
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
	if (is_blocked)
		sys_block_signal(SIGTRAP, false);
}
