/*
 * Hides shim's signals from the program.  The wrappers remove these signals from the
 * masks and sets that the kernel gets.  If the program sets an action for such a
 * signal, shim stores the action and uses it when the program sends the signal.  The
 * program reads back the masks and actions that it has set (runtime/hidden_signals.h).
 * The sampler's signal is reserved by libc, which refuses it to the program.  While
 * shim has no signals, each wrapper costs one comparison.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "arch.h"
#include "coverage/coverage.h"
#include "coverage/sigtrap.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "runtime/hidden_signals.h"
#include "runtime/kept_signals.h"
#include "sampling/sample.h"

#include <errno.h>
#include <shim/builtin.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include <shim/banned.h>

#define HIDDEN __attribute__((visibility("hidden")))

typedef void (*handler)(int);

static struct {
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
	handler (*signal)(int, handler);
	handler (*sysv_signal)(int, handler);
	handler (*sigset)(int, handler);
	int (*sigignore)(int);
	int (*siginterrupt)(int, int);
	int (*sigprocmask)(int, const sigset_t *, sigset_t *);
	int (*pthread_sigmask)(int, const sigset_t *, sigset_t *);
	int (*sigpending)(sigset_t *);
	int (*signalfd)(int, const sigset_t *, int);
	int (*sigwait)(const sigset_t *, int *);
	int (*sigwaitinfo)(const sigset_t *, siginfo_t *);
	int (*sigtimedwait)(const sigset_t *, siginfo_t *,
			    const struct timespec *);
	int (*sigaltstack)(const stack_t *, stack_t *);
} real;

#define FIND(name, symbol) \
	(*(void **)&real.name ? \
		 (void)0 : \
		 (void)(*(void **)&real.name = lookup_real(symbol)))

static int get_sampler_signal(void)
{
	return __atomic_load_n(&sample_signal, __ATOMIC_ACQUIRE);
}

/* The first word of a set, which has all signals of the kernel. */
static uint64_t *bits_of(sigset_t *set)
{
	return (uint64_t *)set;
}

/* Returns @copy, filled with @set without shim's signals; @set itself if it has none of
 * them. */
static const sigset_t *without_hidden(const sigset_t *set, sigset_t *copy)
{
	uint64_t bits = hidden_signals();

	if (!set || !(*bits_of((sigset_t *)set) & bits))
		return set;
	*copy = *set;
	*bits_of(copy) &= ~bits;
	return copy;
}

const sigset_t *edge_signals_without(const sigset_t *set, sigset_t *copy)
{
	return without_hidden(set, copy);
}

static uint64_t hidden_in(const sigset_t *set)
{
	return *bits_of((sigset_t *)set) & hidden_signals();
}

/* Changes a set from the kernel to the program's view, which has @hidden_ones of shim's
 * signals. */
static void show_program_view(sigset_t *set, uint64_t hidden_ones)
{
	uint64_t ours = hidden_signals();

	if (set)
		*bits_of(set) = (*bits_of(set) & ~ours) | (hidden_ones & ours);
}

/* --- actions --- */

/* Sets the action, then lets the sampler watch it.  One thread at a time does these two
 * steps. */
static int set_watched(int signal, const struct sigaction *action,
		       struct sigaction *before)
{
	struct sample_action set = { .signal = signal, .is_alone = true };
	int result;

	if (!action || get_sampler_signal() == 0)
		return real.sigaction(signal, action, before);
	set.handler = (const void *)action->sa_handler;
	sample_action_begin(&set);
	result = real.sigaction(signal, action, before);
	sample_action_end(&set, result == 0);
	return result;
}

static int set_action(int signal, const struct sigaction *action,
		      struct sigaction *before)
{
	uint64_t ours = action ? hidden_in(&action->sa_mask) : 0, old;
	struct sigaction given;
	int result;

	if (action) {
		given = *action;
		*bits_of(&given.sa_mask) &= ~hidden_signals();
	}
	result = set_watched(signal, action ? &given : NULL, before);
	if (result != 0)
		return result;
	old = action ? hidden_mask_handler(signal, ours) :
		       hidden_masks_handler(signal);
	if (before)
		show_program_view(&before->sa_mask, old);
	return result;
}

/* Sets the program's action, without shim's signals in its mask. */
static int set_program_action(int signal, const struct sigaction *action,
			      struct sigaction *before)
{
	if (hidden_signals() == 0)
		return real.sigaction(signal, action, before);
	if (kept_is_on(signal)) {
		kept_set(signal, action, before);
		return 0;
	}
	return set_action(signal, action, before);
}

EDGE int sigaction(int signal, const struct sigaction *action,
		   struct sigaction *before)
{
	FIND(sigaction, "sigaction");
	if (!real.sigaction) {
		errno = ENOSYS;
		return -1;
	}
	if (edge_caught_is(signal))
		return edge_caught_set(signal, action, before,
				       set_program_action);
	return set_program_action(signal, action, before);
}

/* Blocks or unblocks the signal, as sigset() does for SIG_HOLD.  True if it was blocked. */
static bool set_blocked(int signal, bool is_held)
{
	sigset_t set = { { 0 } }, before = { { 0 } };

	*bits_of(&set) = hidden_bit(signal);
	sigprocmask(is_held ? SIG_BLOCK : SIG_UNBLOCK, &set, &before);
	return *bits_of(&before) & hidden_bit(signal);
}

#define FLAGS_signal	  SA_RESTART
#define FLAGS_sysv_signal ((int)SA_RESETHAND | SA_NODEFER)
#define FLAGS_sigset	  0

/* Whether shim has a handler for @signal. */
static bool is_caught(int signal)
{
	return edge_caught_is(signal) || kept_is_on(signal);
}

/* Sets the program's handler for a signal that shim catches.  @alone: false for
 * sigset(). */
static handler set_caught_handler(int signal, handler call, int flags,
				  bool alone)
{
	struct sigaction action = { .sa_flags = flags }, before;
	bool was_held;

	FIND(sigaction, "sigaction");
	action.sa_handler = call;
	if (alone && flags == SA_RESTART)
		*bits_of(&action.sa_mask) = hidden_bit(signal);
	if (call == SIG_ERR ||
	    sigaction(signal, call == SIG_HOLD ? NULL : &action, &before) != 0)
		return SIG_ERR;
	was_held = !alone && set_blocked(signal, call == SIG_HOLD);
	return was_held ? SIG_HOLD : before.sa_handler;
}

/* The older functions need wrappers, because libc's versions call libc's own sigaction.
 * @alone: one thread at a time; false for sigset(), which also changes the mask. */
#define HANDLER_SETTER(name, symbol, alone) \
	{ \
		struct sample_action set = { signal_, (const void *)call, \
					     alone, 0 }; \
		handler before; \
\
		FIND(name, symbol); \
		if (!real.name) { \
			errno = ENOSYS; \
			return SIG_ERR; \
		} \
		if (is_caught(signal_)) \
			return set_caught_handler(signal_, call, FLAGS_##name, \
						  alone); \
		if (get_sampler_signal() == 0) \
			return real.name(signal_, call); \
		sample_action_begin(&set); \
		before = real.name(signal_, call); \
		sample_action_end(&set, before != SIG_ERR); \
		return before; \
	}

EDGE handler signal(int signal_, handler call)
	HANDLER_SETTER(signal, "signal", true)

		EDGE handler bsd_signal(int signal_, handler call);
EDGE handler ssignal(int signal_, handler call);
EDGE handler sysv_signal(int signal_, handler call);
EDGE handler __sysv_signal(int signal_, handler call);
EDGE handler sigset(int signal_, handler call);

handler bsd_signal(int signal_, handler call)
	HANDLER_SETTER(signal, "signal", true)

		handler ssignal(int signal_, handler call)
			HANDLER_SETTER(signal, "signal", true)

				handler
	sysv_signal(int signal_, handler call)
		HANDLER_SETTER(sysv_signal, "__sysv_signal", true)

			handler
	__sysv_signal(int signal_, handler call)
		HANDLER_SETTER(sysv_signal, "__sysv_signal", true)

			handler sigset(int signal_, handler call)
				HANDLER_SETTER(sigset, "sigset", false)

					EDGE int sigignore(int signal_);

int sigignore(int signal_)
{
	FIND(sigignore, "sigignore");
	if (is_caught(signal_))
		return set_caught_handler(signal_, SIG_IGN, 0, true) ==
				       SIG_ERR ?
			       -1 :
			       0;
	return real.sigignore ? real.sigignore(signal_) : -1;
}

EDGE int siginterrupt(int signal_, int flag);

int siginterrupt(int signal_, int flag)
{
	struct sample_action set = { signal_, (const void *)SIG_ERR, true, 0 };
	int result;

	FIND(siginterrupt, "siginterrupt");
	if (is_caught(signal_)) {
		struct sigaction action;

		sigaction(signal_, NULL, &action);
		action.sa_flags &= ~SA_RESTART;
		action.sa_flags |= flag ? 0 : SA_RESTART;
		return sigaction(signal_, &action, NULL);
	}
	if (get_sampler_signal() == 0 || !real.siginterrupt)
		return real.siginterrupt ? real.siginterrupt(signal_, flag) :
					   -1;
	sample_action_begin(&set);
	result = real.siginterrupt(signal_, flag);
	sample_action_end(&set, result == 0);
	return result;
}

/* --- masks --- */

/* Whether a callback in the sampler's handler sets a mask.  It may be the mask that it
 * has read, which lacks shim's signal, and libc would unblock the signal.  shim keeps
 * it blocked: otherwise the next sample would interrupt this sample. */
static bool is_in_sample(int how, const sigset_t *set)
{
	return how == SIG_SETMASK && set && get_sampler_signal() &&
	       thread_current && thread_current->sample_context;
}

static int set_mask_in_sample(const sigset_t *set, sigset_t *before)
{
	uint64_t mask = *bits_of((sigset_t *)set), old = 0;
	long r;

	mask = (mask & ~hidden_signals()) | hidden_bit(get_sampler_signal());
	r = sys_pass_on(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask,
			(long)&old, sizeof(mask), 0, 0);
	if (before) {
		*before = (sigset_t){ { 0 } };
		*bits_of(before) = old;
	}
	return (int)-r;
}

/* Stores which of shim's signals the program blocks.  Called last, because a signal
 * that this unblocks may arrive at once. */
static void store_blocked(int how, const sigset_t *set)
{
	uint64_t blocked = hidden_blocked();

	if (how == SIG_SETMASK)
		hidden_block(hidden_in(set));
	else if (how == SIG_BLOCK)
		hidden_block(blocked | hidden_in(set));
	else
		hidden_block(blocked & ~hidden_in(set));
}

/* @set and @before may be the same memory. */
static int set_mask(int (*set_real)(int, const sigset_t *, sigset_t *), int how,
		    const sigset_t *set, sigset_t *before)
{
	sigset_t copy, given;
	int result;

	if (hidden_signals() == 0) {
		result = set_real(how, set, before);
		/* If shim has got signals meanwhile, the call may have blocked them. */
		if (set && hidden_signals() != 0)
			hidden_thread_begins(0);
		return result;
	}
	if (set)
		given = *set;
	if (is_in_sample(how, set))
		result = set_mask_in_sample(&given, before);
	else
		result = set_real(how,
				  set ? without_hidden(&given, &copy) : NULL,
				  before);
	if (result != 0)
		return result;
	show_program_view(before, hidden_blocked());
	if (set)
		store_blocked(how, &given);
	return result;
}

EDGE int sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
	FIND(sigprocmask, "sigprocmask");
	if (!real.sigprocmask) {
		errno = ENOSYS;
		return -1;
	}
	return set_mask(real.sigprocmask, how, set, before);
}

EDGE int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
	FIND(pthread_sigmask, "pthread_sigmask");
	return real.pthread_sigmask ?
		       set_mask(real.pthread_sigmask, how, set, before) :
		       ENOSYS;
}

EDGE int sigpending(sigset_t *set)
{
	int result;

	FIND(sigpending, "sigpending");
	result = real.sigpending ? real.sigpending(set) : -1;
	/* A pending SIGBUS is pending in the kernel (runtime/kept_signals.c). */
	if (result == 0)
		show_program_view(set, hidden_pending() | (*bits_of(set) &
							   hidden_bit(SIGBUS)));
	return result;
}

/* --- waiting --- */

/* Removes shim's signals except SIGBUS: a thread that waits for SIGBUS gets it, blocked
 * or not. */
static const sigset_t *without_hidden_but_sigbus(const sigset_t *set,
						 sigset_t *copy)
{
	const sigset_t *rest = without_hidden(set, copy);

	if (rest == copy)
		*bits_of(copy) |= *bits_of((sigset_t *)set) &
				  hidden_bit(SIGBUS);
	return rest;
}

/* Ends shim's use of SIGTRAP if the program waits for SIGTRAP alone, so that the
 * program gets it. */
static void release_sigtrap(const sigset_t *set)
{
	if (set && sigtrap_is_on() &&
	    *bits_of((sigset_t *)set) == hidden_bit(SIGTRAP))
		coverage_give_up("the program waits for SIGTRAP");
}

EDGE int signalfd(int fd, const sigset_t *set, int flags)
{
	sigset_t copy;

	FIND(signalfd, "signalfd");
	if (!real.signalfd) {
		errno = ENOSYS;
		return -1;
	}
	release_sigtrap(set);
	return real.signalfd(fd, without_hidden_but_sigbus(set, &copy), flags);
}

EDGE int sigwait(const sigset_t *set, int *signal_)
{
	sigset_t copy;

	FIND(sigwait, "sigwait");
	if (!real.sigwait)
		return ENOSYS;
	release_sigtrap(set);
	return real.sigwait(without_hidden_but_sigbus(set, &copy), signal_);
}

EDGE int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	sigset_t copy;

	FIND(sigwaitinfo, "sigwaitinfo");
	if (!real.sigwaitinfo) {
		errno = ENOSYS;
		return -1;
	}
	release_sigtrap(set);
	return real.sigwaitinfo(without_hidden_but_sigbus(set, &copy), info);
}

EDGE int sigtimedwait(const sigset_t *set, siginfo_t *info,
		      const struct timespec *timeout)
{
	sigset_t copy;

	FIND(sigtimedwait, "sigtimedwait");
	if (!real.sigtimedwait) {
		errno = ENOSYS;
		return -1;
	}
	release_sigtrap(set);
	return real.sigtimedwait(without_hidden_but_sigbus(set, &copy), info,
				 timeout);
}

/* --- raw system calls of the program, from arch/.../edge.S --- */

#if defined(SYS_rt_sigprocmask) && defined(SYS_rt_sigaction)

HIDDEN long edge_syscall_signals(long number, long a, long b, long c, long d);

static long raw_mask(int how, uintptr_t set, uintptr_t before, size_t size)
{
	uint64_t given = 0, old;
	sigset_t signals = { { 0 } };
	long r;

	if (set && sys_peek((const void *)set, &given, sizeof(given)) < 0)
		return -EFAULT;
	*bits_of(&signals) = given;
	given &= ~hidden_signals();
	r = sys_pass_on(SYS_rt_sigprocmask, how, set ? (long)&given : 0,
			(long)&old, (long)size, 0, 0);
	if (r < 0)
		return r;
	old = (old & ~hidden_signals()) | (hidden_blocked() & hidden_signals());
	if (set)
		store_blocked(how, &signals);
	return before ? sys_poke((void *)before, &old, sizeof(old)) : 0;
}

static void swap_own(int signal, const struct sys_action *action,
		     struct sys_action *before)
{
	if (kept_is_on(signal)) {
		kept_swap(signal, action, before);
		return;
	}
	*before = sample_program_action;
	if (action)
		sample_program_action = *action;
}

static long raw_action(int signal, uintptr_t action, uintptr_t before,
		       size_t size)
{
	bool is_own = signal > 0 && signal <= 64 &&
		      (hidden_bit(signal) & hidden_signals());
	struct sys_action given, old = { 0 };
	uint64_t masked;
	long r = 0;

	if (action && sys_peek((const void *)action, &given, sizeof(given)) < 0)
		return -EFAULT;
	masked = given.mask & hidden_signals();
	given.mask &= ~masked;
	if (is_own)
		swap_own(signal, action ? &given : NULL, &old);
	else
		r = sys_pass_on(SYS_rt_sigaction, signal,
				action ? (long)&given : 0, (long)&old,
				(long)size, 0, 0);
	if (r < 0)
		return r;
	old.mask |= action ? hidden_mask_handler(signal, masked) :
			     hidden_masks_handler(signal);
	return before ? sys_poke((void *)before, &old, sizeof(old)) : 0;
}

long edge_syscall_signals(long number, long a, long b, long c, long d)
{
	long r;

	if (hidden_signals() == 0 || d != sizeof(uint64_t))
		r = sys_pass_on(number, a, b, c, d, 0, 0);
	else if (number == SYS_rt_sigprocmask)
		r = raw_mask((int)a, (uintptr_t)b, (uintptr_t)c, (size_t)d);
	else
		r = raw_action((int)a, (uintptr_t)b, (uintptr_t)c, (size_t)d);
	if (r >= 0)
		return r;
	errno = (int)-r;
	return -1;
}

#endif

/* --- the signal stack, which shim may have set for the thread --- */

static int set_signal_stack(const stack_t *stack, stack_t *before)
{
	stack_t old;
	bool ours;

	if (hidden_signals() == 0 || real.sigaltstack(NULL, &old) != 0)
		return real.sigaltstack(stack, before);
	ours = sample_is_our_stack(old.ss_sp);
	/* The program does not know shim's stack, so there is no stack to disable. */
	if (ours && stack && (stack->ss_flags & SS_DISABLE))
		stack = NULL;
	if (real.sigaltstack(stack, before) != 0)
		return -1;
	if (ours && before)
		*before = (stack_t){ .ss_flags = SS_DISABLE };
	return 0;
}

EDGE int sigaltstack(const stack_t *stack, stack_t *before)
{
	int r;

	FIND(sigaltstack, "sigaltstack");
	if (!real.sigaltstack) {
		errno = ENOSYS;
		return -1;
	}
	r = set_signal_stack(stack, before);
	if (stack)
		__atomic_fetch_add(&shim_signal_stack_changes, 1,
				   __ATOMIC_RELAXED);
	return r;
}

/* Runs in the constructor, because signal handlers may call some of these functions. */
void edge_signals_resolve(void)
{
	FIND(sigaction, "sigaction");
	FIND(signal, "signal");
	FIND(sysv_signal, "__sysv_signal");
	FIND(sigset, "sigset");
	FIND(sigignore, "sigignore");
	FIND(siginterrupt, "siginterrupt");
	FIND(sigprocmask, "sigprocmask");
	FIND(pthread_sigmask, "pthread_sigmask");
	FIND(sigpending, "sigpending");
	FIND(signalfd, "signalfd");
	FIND(sigwait, "sigwait");
	FIND(sigwaitinfo, "sigwaitinfo");
	FIND(sigtimedwait, "sigtimedwait");
	FIND(sigaltstack, "sigaltstack");
}
