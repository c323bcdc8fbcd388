/*
 * Restarts system calls that shim's signal has interrupted.
 *
 * SA_RESTART is not enough: many calls that wait for a time or for several objects fail
 * with EINTR after any handler.  So the handler itself continues them.  shim's signal
 * is blocked meanwhile, so that a sleep is interrupted once.  The program's mask is in
 * force, so that its own signals interrupt the call as usual.  The kernel merges the
 * timer's expiries meanwhile into one signal, which arrives after the call with their
 * number: the weight of the sample is the length of the sleep.
 *
 * The kernel itself continues poll, nanosleep and futex, exactly to the nanosecond, by
 * restart_syscall.  restart_syscall refuses if another signal came in between.  shim
 * repeats other calls from the beginning when they are first interrupted: a relative
 * timeout then ends late by up to one period.
 *
 * If the handler runs on a signal stack, it goes on on the thread's own stack before the
 * call (sampling/own_stack.c).
 *
 * A futex without a timeout is left to the kernel.
 *
 * shim also completes a call that had done only a part of its work
 * (sampling/syscall_restart_part.c).
 *
 * A call that has just failed with EINTR for a handler of the program must not be
 * continued.  So the program's handlers return through a restorer of shim, which marks
 * the restored registers: a system call leaves its return address in a register that no
 * code uses, and the restorer clears it.  The next call removes the mark.
 */
#define _GNU_SOURCE
#include "sampling/sample.h"

#include "arch.h"
#include "os/sys.h"
#include "sampling/open_call.h"
#include "sampling/own_stack.h"
#include "sampling/syscall_restart_part.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#include <shim/banned.h>

#define MASK_SIZE 8
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

/* --- kinds of calls --- */

enum kind {
	KIND_NONE,
	KIND_KERNEL, /* the kernel can continue it */
	KIND_AGAIN,  /* repeated from the beginning */
	KIND_MASKED, /* the same, with a signal mask while it waits */
};

static bool is_absolute(const struct arch_call *call)
{
	return call->number == SYS_clock_nanosleep &&
	       (call->arguments[1] & TIMER_ABSTIME);
}

static enum kind find_kind(const struct arch_call *call)
{
	switch (call->number) {
#ifdef SYS_poll
	case SYS_poll:
#endif
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_futex:
		if (!call->failed || is_absolute(call))
			return KIND_AGAIN;
		return KIND_KERNEL;
	/* The kernel continues the call so after a stop. */
	case SYS_restart_syscall: return KIND_KERNEL;
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
	case SYS_pause:
#endif
	case SYS_pselect6:
	case SYS_ppoll:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_io_pgetevents:
	case SYS_rt_sigsuspend: return KIND_MASKED;
	case SYS_io_uring_enter:
		return call->arguments[3] & RING_HAS_INDEX ? KIND_AGAIN :
							     KIND_MASKED;
	case SYS_read:
	case SYS_write:
	case SYS_readv:
	case SYS_writev:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_connect:
	case SYS_accept:
	case SYS_accept4:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_rt_sigtimedwait:
	case SYS_semtimedop:
	case SYS_semop:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_io_getevents:
#ifdef SYS_select
	case SYS_select:
#endif
		return KIND_AGAIN;
	}
	return KIND_NONE;
}

/* --- continuing --- */

struct masked {
	const uint64_t *mask;
	size_t size;
};

struct ring_wait {
	uint64_t mask;
	uint32_t size, shortest;
	uint64_t timeout;
};

/* Where a call's arguments have to be in memory. */
struct waits {
	struct masked masked;
	struct ring_wait ring;
};

static long repeat_call(const struct arch_call *call)
{
	const long *a = call->arguments;

	return sys_pass_on(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Puts the mask into the arguments.  A call without a mask argument is replaced by the
 * one with a mask: only the kernel can change the mask at the moment when the wait
 * begins. */
static void use_mask(struct arch_call *call, uint64_t *mask,
		     struct waits *waits)
{
	const uint64_t own = sample_signal_rest_mask();
	const uint64_t *given = NULL;
	long *a = call->arguments;

	switch (call->number) {
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
		call->number = SYS_epoll_pwait;
		a[4] = 0;
		break;
	case SYS_pause:
		call->number = SYS_rt_sigsuspend;
		a[0] = 0;
		break;
#endif
	}
	switch (call->number) {
	case SYS_ppoll: given = (const uint64_t *)a[3]; break;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2: given = (const uint64_t *)a[4]; break;
	case SYS_rt_sigsuspend: given = (const uint64_t *)a[0]; break;
	case SYS_io_pgetevents:
	case SYS_pselect6:
		if (a[5])
			given = ((const struct masked *)a[5])->mask;
		break;
	case SYS_io_uring_enter:
		if (!(a[3] & RING_HAS_STRUCT))
			given = (const uint64_t *)a[4];
		else if (sys_peek((const void *)a[4], &waits->ring,
				  sizeof(waits->ring)) == 0)
			given = (const uint64_t *)waits->ring.mask;
		else
			return;
		break;
	}
	if (given)
		*mask = *given;
	*mask |= own;
	waits->masked.mask = mask;
	waits->masked.size = MASK_SIZE;
	switch (call->number) {
	case SYS_ppoll: a[3] = (long)mask, a[4] = MASK_SIZE; break;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2: a[4] = (long)mask, a[5] = MASK_SIZE; break;
	case SYS_rt_sigsuspend: a[0] = (long)mask, a[1] = MASK_SIZE; break;
	case SYS_io_pgetevents:
	case SYS_pselect6: a[5] = (long)&waits->masked; break;
	case SYS_io_uring_enter:
		waits->ring.mask = (uintptr_t)mask;
		waits->ring.size = MASK_SIZE;
		if (a[3] & RING_HAS_STRUCT)
			a[4] = (long)&waits->ring;
		else
			a[4] = (long)mask, a[5] = MASK_SIZE;
		break;
	}
}

/*
 * Whether handlers of the program are about to run, for signals that came meanwhile.
 * *@fails tells whether such a signal makes the call fail: the call has failed already,
 * or the flags of the first handler say so.  A signal without a handler is pending too
 * while all signals are blocked, but does not interrupt the call.
 */
static bool is_pending(const struct arch_call *call, uint64_t mask, bool *fails)
{
	struct sys_action action = { 0 };
	uint64_t pending;

	*fails = call->failed;
	if (sys_pending_signals(&pending) < 0)
		return false;
	pending &= ~(mask | 1ull << (sample_signal - 1));
	for (; pending != 0; pending &= pending - 1) {
		if (sys_signal_action(__builtin_ctzll(pending) + 1, NULL,
				      &action) < 0 ||
		    action.handler == (void *)SIG_DFL ||
		    action.handler == (void *)SIG_IGN)
			continue;
		*fails |= !(action.flags & SA_RESTART);
		return true;
	}
	return false;
}

static long continue_call(enum kind kind, struct arch_call *call, uint64_t mask)
{
	uint64_t all, waiting = mask | sample_signal_rest_mask();
	struct arch_call restart = { .number = SYS_restart_syscall };
	struct waits waits;
	long result;

	/* In a call with a temporary mask, the kernel will restore @mask. */
	if (kind == KIND_MASKED) {
		use_mask(call, &mask, &waits);
		return repeat_call(call);
	}
	if (sys_hold_signals(&all) < 0)
		return -EINTR;
	do
		result = arch_call_with_mask(
			kind == KIND_KERNEL ? &restart : call, &waiting);
	while (result == ARCH_RESTARTS && !call->failed);
	sys_release_signals(all);
	return result == ARCH_RESTARTS ? -EINTR : result;
}

static bool add_part(const struct part_rest *rest, long result, long *done)
{
	unsigned length;

	if (!rest->length) {
		*done += result;
		return true;
	}
	if (sys_peek(rest->length, &length, sizeof(length)) < 0)
		return false;
	length += (unsigned)result;
	return sys_poke(rest->length, &length, sizeof(length)) == 0;
}

/* The program's next call reports an error in the rest. */
static long do_rest(const struct arch_call *call, uint64_t mask)
{
	long done = call->part, result;
	struct part_rest rest;
	bool fails;

	while (part_find_rest(call, done, &rest)) {
		if (is_pending(call, mask, &fails))
			break;
		result = continue_call(KIND_AGAIN, &rest.call, mask);
		if (result <= 0 || !add_part(&rest, result, &done))
			break;
	}
	return done;
}

/* Tells that the thread's stack does not change while shim's signal is blocked.  A
 * thread that wants a snapshot reads the stack itself. */
static void rest_begin(struct thread *self, const ucontext_t *context)
{
	self->rest_context = context;
	__atomic_store_n(&self->rests, self->rests | 1, __ATOMIC_SEQ_CST);
}

/* A jump out of a handler of the program may have ended the rest before. */
static void rest_end(struct thread *self)
{
	__atomic_store_n(&self->rests, (self->rests | 1) + 1, __ATOMIC_RELEASE);
}

/*
 * Whether the kernel repeats the call as well: threads wait for others in such calls, and then
 * another one may stop them with a signal, to read their stacks (as collectors of garbage do).  It
 * must not find them in shim's handler.  Samples of real time would come again and again.
 */
static bool is_for_kernel(const struct arch_call *call, bool is_real)
{
	return call->number == SYS_futex && !call->failed && !is_real;
}

/* What is to be done about an interrupted call. */
struct restart {
	struct arch_call call;
	enum kind kind; /* KIND_NONE: it has done a part of its work */
};

static bool find_restart(struct thread *self, ucontext_t *context, bool is_real,
			 struct restart *restart)
{
	uint64_t mask = *(const uint64_t *)&context->uc_sigmask;
	struct arch_call *call = &restart->call;
	struct part_rest rest;
	bool fails;

	restart->kind = KIND_NONE;
	if (!ARCH_FIND_CALL(context, call, sys_peek))
		return false;
	if (call->part > 0)
		return part_find_rest(call, call->part, &rest);
	if (call->number < 0)
		call->number = open_call_number(self, context, call);
	restart->kind = find_kind(call);
	if (restart->kind == KIND_AGAIN && is_pending(call, mask, &fails)) {
		if (fails)
			ARCH_SET_RESULT(context, call, -EINTR);
		return false;
	}
	return restart->kind != KIND_NONE && !is_for_kernel(call, is_real);
}

static void do_restart(void *interrupted, const void *argument)
{
	ucontext_t *context = interrupted;
	uint64_t mask = *(const uint64_t *)&context->uc_sigmask;
	struct restart restart = *(const struct restart *)argument;
	struct thread *self = thread_current;
	long result;

	rest_begin(self, context);
	if (restart.kind == KIND_NONE)
		result = do_rest(&restart.call, mask);
	else
		result = continue_call(restart.kind, &restart.call, mask);
	rest_end(self);
	if (restart.kind == KIND_NONE)
		restart.call.part = result;
	ARCH_SET_RESULT(context, &restart.call, result);
}

void syscall_restart_call(struct thread *self, ucontext_t *context,
			  bool is_real, uint64_t *count)
{
	struct restart restart;

	/* Nested calls occur only while the program changes its ids: libc's signal for
	 * that may end the call, too. */
	if ((self->rests & 1) || sys_is_forbidden() ||
	    !find_restart(self, context, is_real, &restart))
		return;
	__atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
	own_stack_go_on(self, context, &restart, sizeof(restart), do_restart);
	do_restart(context, &restart);
}

void syscall_restart_watch_handlers_of(int signal)
{
	struct sys_action action;
	void (*restorer)(void);

	if (ARCH_HAS_RESTORER == 0 || signal == sample_signal ||
	    sys_signal_action(signal, NULL, &action) < 0 ||
	    action.handler == (void *)SIG_DFL ||
	    action.handler == (void *)SIG_IGN)
		return;
	restorer = action.flags & SA_RESTART ? arch_signal_return_restarts :
					       arch_signal_return_fails;
	if (action.restorer == restorer)
		return;
	action.flags |= ARCH_HAS_RESTORER;
	action.restorer = restorer;
	sys_signal_action(signal, &action, NULL);
}
