/*
 * The system calls for signals: masks, actions, sending, and the alternate stack.
 */
#define _GNU_SOURCE
#include "os/sys.h"

#include "os/sys_call.h"

#include <signal.h>
#include <sys/syscall.h>

#include <shim/banned.h>

static uint64_t open_signals;

void sys_keep_open(uint64_t signals)
{
	__atomic_store_n(&open_signals, signals, __ATOMIC_RELEASE);
}

static __attribute__((noinline, cold)) int
change_mask_again(int how, const uint64_t *set, uint64_t *before)
{
	return (int)sys_insist(SYS_rt_sigprocmask, how, (long)set, (long)before,
			       sizeof(*set));
}

/* Hooks call this function on small stacks, so change_mask_again has the frame of the
 * rare case. */
static inline int change_mask(int how, const uint64_t *set, uint64_t *before)
{
	int r = (int)sys_call(SYS_rt_sigprocmask, how, (long)set, (long)before,
			      sizeof(*set), 0, 0);

	return __builtin_expect(r < 0, 0) ?
		       change_mask_again(how, set, before) :
		       r;
}

int sys_block_signals(uint64_t *before)
{
	uint64_t all = ~open_signals;

	return change_mask(SIG_SETMASK, &all, before);
}

int sys_restore_signals(uint64_t before)
{
	return change_mask(SIG_SETMASK, &before, NULL);
}

int sys_block_signal(int signal, bool blocked)
{
	uint64_t set = 1ull << (signal - 1);

	return change_mask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

int sys_unblock_signals(uint64_t signals, uint64_t *before)
{
	return change_mask(SIG_UNBLOCK, &signals, before);
}

int sys_pending_signals(uint64_t *signals)
{
	return (int)sys_insist(SYS_rt_sigpending, (long)signals,
			       sizeof(*signals), 0, 0);
}

int sys_signal_action(int signal, const struct sys_action *action,
		      struct sys_action *before)
{
	return (int)sys_insist(SYS_rt_sigaction, signal, (long)action,
			       (long)before, sizeof(uint64_t));
}

void sys_signal_thread(int signal)
{
	sys_call(SYS_tgkill, sys_getpid(), sys_gettid(), signal, 0, 0, 0);
}

int sys_send_again(int tid, int signal, const void *info)
{
	return (int)sys_call(SYS_rt_tgsigqueueinfo, sys_getpid(), tid, signal,
			     (long)info, 0, 0);
}

int sys_queue_signal(int tid, int signal, void *value)
{
	siginfo_t info = { .si_code = SI_QUEUE };

	info.si_pid = sys_getpid();
	info.si_value.sival_ptr = value;
	return (int)sys_call(SYS_rt_tgsigqueueinfo, info.si_pid, tid, signal,
			     (long)&info, 0, 0);
}

int sys_set_signal_stack(void *low, size_t size)
{
	stack_t stack = { .ss_sp = low, .ss_size = size };

	return (int)sys_call(SYS_sigaltstack, (long)&stack, 0, 0, 0, 0, 0);
}

int sys_signal_stack(uintptr_t *low, uintptr_t *high, bool *in_use)
{
	stack_t stack;
	int r = (int)sys_call(SYS_sigaltstack, 0, (long)&stack, 0, 0, 0, 0);

	if (r < 0)
		return r;
	*low = (uintptr_t)stack.ss_sp;
	*high = *low + stack.ss_size;
	*in_use = (stack.ss_flags & SS_ONSTACK) != 0;
	return 0;
}
