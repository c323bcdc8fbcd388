/*
 * The handler of SIGTRAP while traps are set.  The kernel has only this handler.
 * runtime/kept_signals.c stores the program's own handler, and calls it for a SIGTRAP
 * that no trap of shim has raised.
 */
#define _GNU_SOURCE
#include "coverage/sigtrap.h"

#include "arch.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "runtime/hidden_signals.h"
#include "runtime/kept_signals.h"
#include "runtime/state.h"
#include "sampling/sample.h"

#include <errno.h>
#include <ucontext.h>

#include <shim/banned.h>

#define TRAP_BIT (1ull << (SIGTRAP - 1))

enum { NEVER, ON, STOPPED };

static int status;

bool sigtrap_is_on(void)
{
	return __atomic_load_n(&status, __ATOMIC_ACQUIRE) == ON;
}

/* A step or a watchpoint of the program also raises SIGTRAP, behind any instruction.  Other
 * kernels than Linux have TRAP_BRKPT for a trap. */
static bool is_from_trap(const siginfo_t *info)
{
	return info->si_code == SI_KERNEL || info->si_code == TRAP_BRKPT;
}

static void handle_sigtrap(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	uintptr_t address = ARCH_CONTEXT_IP(interrupted) - ARCH_TRAP_SIZE;
	enum sigtrap_owner whose = TRAP_NOT_OURS;

	sample_stack_after(interrupted);
	if (info->si_code <= 0) {
		kept_take_sent(signal, info, interrupted);
		return;
	}
	if (is_from_trap(info))
		NOTIFY(sigtrap_taken, address, interrupted, &whose);
	switch (whose) {
	case TRAP_OURS: return;
	case TRAP_STAYS:
		/* The same trap again, with its signal blocked, ends the program.  That
		 * works also where no system call does. */
		*(uint64_t *)&interrupted->uc_sigmask |= TRAP_BIT;
		ARCH_CONTEXT_GO_TO(interrupted, address);
		return;
	case TRAP_NOT_OURS: break;
	}
	kept_take_raised(signal, info, interrupted, false);
}

/* --- on and off --- */

static int install_locked(void *unused)
{
	(void)unused;
	if (status != NEVER)
		return 0;
	if (kept_start(SIGTRAP, handle_sigtrap) < 0)
		return -EBUSY;
	__atomic_store_n(&status, ON, __ATOMIC_RELEASE);
	return 0;
}

bool sigtrap_start(void)
{
	uint64_t mask;

	if (sigtrap_is_on())
		return true;
	/* The thread may have begun with the signal blocked.  (An attach blocks all
	 * signals of its thread for a moment.) */
	if (sys_unblock_signals(0, &mask) < 0)
		return false;
	if (lookup_was_attached() && hidden_is_quiet(mask))
		mask = 0;
	state_call_locked(install_locked, NULL);
	if (!sigtrap_is_on())
		return false;
	if (hidden_thread_begins(mask) == 0)
		return true;
	sigtrap_stop();
	return false;
}

static int install_again_locked(void *unused)
{
	struct sys_action now;

	(void)unused;
	if (sys_signal_action(SIGTRAP, NULL, &now) < 0)
		return -1;
	return now.handler == (void *)handle_sigtrap ?
		       0 :
		       kept_start(SIGTRAP, handle_sigtrap);
}

bool sigtrap_install_again(void)
{
	return state_call_locked(install_again_locked, NULL) == 0 &&
	       hidden_thread_begins(0) == 0;
}

static int uninstall_locked(void *unused)
{
	(void)unused;
	if (status != ON)
		return -1;
	kept_stop(SIGTRAP);
	__atomic_store_n(&status, STOPPED, __ATOMIC_RELEASE);
	return 0;
}

bool sigtrap_stop(void)
{
	bool stopped = state_call_locked(uninstall_locked, NULL) == 0;

	if (stopped && (hidden_blocked() & TRAP_BIT))
		sys_block_signal(SIGTRAP, true);
	if (stopped && (hidden_pending() & TRAP_BIT))
		sys_signal_thread(SIGTRAP);
	return stopped;
}
