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

int sys_hold_signals(uint64_t *before)
{
	uint64_t all = ~open_signals;

	return change_mask(SIG_SETMASK, &all, before);
}

static __attribute__((noinline, cold)) int release_again(uint64_t before)
{
	int r = -EPERM;

	for (int i = 0; i < TRIES && r < 0; i++)
		r = (int)arch_syscall(SYS_rt_sigprocmask, SIG_SETMASK,
				      (long)&before, 0, sizeof(before), 0, 0);
	return r;
}

int sys_release_signals(uint64_t before)
{
	int r = (int)arch_syscall(SYS_rt_sigprocmask, SIG_SETMASK,
				  (long)&before, 0, sizeof(before), 0, 0);

	return __builtin_expect(r < 0, 0) ? release_again(before) : r;
}

int sys_set_signals(uint64_t blocked)
{
	return change_mask(SIG_SETMASK, &blocked, NULL);
}

static int blocking_threads;

bool sys_has_blocked_signals(void)
{
	return __atomic_load_n(&blocking_threads, __ATOMIC_SEQ_CST) > 0;
}

void sys_signals_forked(void)
{
	__atomic_store_n(&blocking_threads, 0, __ATOMIC_RELAXED);
}

static __attribute__((noinline, cold)) int block_again(uint64_t *before)
{
	int r = sys_is_closing() ? -EPERM : sys_hold_signals(before);

	if (r < 0)
		__atomic_fetch_sub(&blocking_threads, 1, __ATOMIC_SEQ_CST);
	return r;
}

int sys_block_signals(uint64_t *before)
{
	uint64_t all = ~open_signals;
	int r = -EPERM;

	__atomic_fetch_add(&blocking_threads, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&sys_closing, __ATOMIC_SEQ_CST))
		r = (int)sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all,
				  (long)before, sizeof(all), 0, 0);
	return __builtin_expect(r < 0, 0) ? block_again(before) : r;
}

/* A handler of the program may run at once, and never return here. */
int sys_restore_signals(uint64_t before)
{
	__atomic_fetch_sub(&blocking_threads, 1, __ATOMIC_SEQ_CST);
	return sys_release_signals(before);
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
