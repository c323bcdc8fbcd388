/*
 * Keeps the sampler's signal from the program: it is in no mask the program sets
 * or sees, nobody waits for it, and what the program sets for it is kept apart
 * and used when somebody sends it.  Programs that choose a real-time signal by
 * SIGRTMAX get another one.  While nothing samples each of these is one
 * comparison.
 */
#define _GNU_SOURCE
#include "edge.h"

#include "coverage.h"
#include "sample.h"
#include "trap.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <shim/banned.h>

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
	int (*current_sigrtmax)(void);
} real;

#define FIND(name, symbol)                                                     \
	(*(void **)&real.name ? (void)0 :                                      \
				(void)(*(void **)&real.name = edge_next(symbol)))

static int hidden(void)
{
	return __atomic_load_n(&sample_signal, __ATOMIC_ACQUIRE);
}

/* What the kernel sees of a set: all the signals there are. */
static uint64_t *bits_of(sigset_t *set)
{
	return (uint64_t *)set;
}

static uint64_t bit_of(int signal)
{
	return 1ull << (signal - 1);
}

static void remove_from(sigset_t *set)
{
	int signal = hidden();

	if (set && signal != 0)
		*bits_of(set) &= ~bit_of(signal);
}

/* Of what must not be blocked: the trap's, too (trap.h). */
static uint64_t hidden_bits(void)
{
	int signal = hidden();

	return (signal ? bit_of(signal) : 0) |
	       (trap_is_on() ? bit_of(SIGTRAP) : 0);
}

/* A copy of @set without our signals; @set itself if they are not in there. */
static const sigset_t *without(const sigset_t *set, sigset_t *copy)
{
	uint64_t bits = hidden_bits();

	if (!set || !(*bits_of((sigset_t *)set) & bits))
		return set;
	*copy = *set;
	*bits_of(copy) &= ~bits;
	return copy;
}

const sigset_t *edge_signals_without(const sigset_t *set, sigset_t *copy)
{
	return without(set, copy);
}

static bool has_trap(const sigset_t *set)
{
	return set && (*bits_of((sigset_t *)set) & bit_of(SIGTRAP));
}

/* What the program is to see in a set that the kernel has told. */
static void show_trap(sigset_t *set, bool is_there)
{
	if (set && is_there)
		*bits_of(set) |= bit_of(SIGTRAP);
}

/* --- what happens on a signal --- */

static void get_program_action(struct sigaction *action)
{
	*action = (struct sigaction){ .sa_flags = 0 };
	*bits_of(&action->sa_mask) = sample_program_action.mask;
	action->sa_flags = (int)sample_program_action.flags;
	action->sa_handler = (handler)sample_program_action.handler;
}

static void set_program_action(const struct sigaction *action)
{
	sample_program_action.mask = *bits_of((sigset_t *)&action->sa_mask);
	sample_program_action.flags = (uint64_t)action->sa_flags;
	sample_program_action.handler = (void *)action->sa_handler;
}

static handler set_program_handler(handler call)
{
	handler before = (handler)sample_program_action.handler;

	sample_program_action = (struct sys_action){ .handler = (void *)call };
	return before;
}

/* One thread at a time: it takes two steps. */
static int set_watched(int signal, const struct sigaction *action,
		       struct sigaction *before)
{
	uint64_t mask = 0;
	bool begun;
	int result;

	if (!action || hidden() == 0)
		return real.sigaction(signal, action, before);
	begun = resume_set_begin(&mask);
	result = real.sigaction(signal, action, before);
	if (result == 0)
		resume_watch_handlers_of(signal);
	if (begun)
		resume_set_end(mask);
	return result;
}

static int set_action(int signal, const struct sigaction *action,
		      struct sigaction *before)
{
	struct sigaction given;
	bool masked = false;
	int result;

	if (action) {
		given = *action;
		*bits_of(&given.sa_mask) &= ~hidden_bits();
	}
	result = set_watched(signal, action ? &given : NULL, before);
	if (result != 0)
		return result;
	if (trap_is_on())
		masked = action ? trap_mask_handler(signal,
						    has_trap(&action->sa_mask)) :
				  trap_masks_handler(signal);
	if (before)
		show_trap(&before->sa_mask, masked);
	return result;
}

/* As the kernel is to have it. */
static int set_any(int signal, const struct sigaction *action,
		   struct sigaction *before)
{
	return hidden_bits() == 0 ? real.sigaction(signal, action, before) :
				    set_action(signal, action, before);
}

EDGE int sigaction(int signal, const struct sigaction *action,
		   struct sigaction *before)
{
	struct sigaction old;

	FIND(sigaction, "sigaction");
	if (!real.sigaction) {
		errno = ENOSYS;
		return -1;
	}
	if (edge_asked_is(signal))
		return edge_asked_set(signal, action, before, set_any);
	if (hidden_bits() == 0)
		return real.sigaction(signal, action, before);
	if (trap_is_on() && signal == SIGTRAP) {
		trap_set_action(action, before);
		return 0;
	}
	if (signal == hidden()) {
		get_program_action(&old);
		if (action)
			set_program_action(action);
		if (before)
			*before = old;
		return 0;
	}
	return set_action(signal, action, before);
}

static handler set_trap_handler(handler call)
{
	struct sigaction action = { .sa_flags = SA_RESTART }, before;

	action.sa_handler = call;
	trap_set_action(&action, &before);
	return before.sa_handler;
}

/* sigset() blocks and unblocks it as well; a signal that was blocked had SIG_HOLD. */
static bool hold(int signal, bool is_held)
{
	sigset_t set = { { 0 } }, before = { { 0 } };

	*bits_of(&set) = bit_of(signal);
	sigprocmask(is_held ? SIG_BLOCK : SIG_UNBLOCK, &set, &before);
	return *bits_of(&before) & bit_of(signal);
}

#define FLAGS_signal	  SA_RESTART
#define FLAGS_sysv_signal ((int)SA_RESETHAND | SA_NODEFER)
#define FLAGS_sigset	  0

/* @alone: it is not sigset(). */
static handler set_asked_handler(int signal, handler call, int flags,
				 bool alone)
{
	struct sigaction action = { .sa_flags = flags }, before;
	bool was_held;

	FIND(sigaction, "sigaction");
	action.sa_handler = call;
	if (alone && flags == SA_RESTART)
		*bits_of(&action.sa_mask) = bit_of(signal);
	if (call == SIG_ERR ||
	    sigaction(signal, call == SIG_HOLD ? NULL : &action, &before) != 0)
		return SIG_ERR;
	was_held = !alone && hold(signal, call == SIG_HOLD);
	return was_held ? SIG_HOLD : before.sa_handler;
}

/* The old ways.  All that libc makes of them is a call of its own sigaction. */
/* @alone: one thread at a time; not where the mask changes, too. */
#define HANDLER_SETTER(name, symbol, alone)                                    \
	{                                                                      \
		handler before;                                                \
		uint64_t mask = 0;                                             \
		bool begun;                                                    \
                                                                               \
		FIND(name, symbol);                                            \
		if (!real.name) {                                              \
			errno = ENOSYS;                                        \
			return SIG_ERR;                                        \
		}                                                              \
		if (signal_ != 0 && signal_ == hidden())                       \
			return set_program_handler(call);                      \
		if (signal_ == SIGTRAP && trap_is_on())                        \
			return set_trap_handler(call);                         \
		if (edge_asked_is(signal_))                                    \
			return set_asked_handler(signal_, call, FLAGS_##name,  \
						 alone);                       \
		if (hidden() == 0)                                             \
			return real.name(signal_, call);                       \
		begun = (alone) && resume_set_begin(&mask);                    \
		before = real.name(signal_, call);                             \
		if (before != SIG_ERR)                                         \
			resume_watch_handlers_of(signal_);                     \
		if (begun)                                                     \
			resume_set_end(mask);                                  \
		return before;                                                 \
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

handler sysv_signal(int signal_, handler call)
HANDLER_SETTER(sysv_signal, "__sysv_signal", true)

handler __sysv_signal(int signal_, handler call)
HANDLER_SETTER(sysv_signal, "__sysv_signal", true)

handler sigset(int signal_, handler call)
HANDLER_SETTER(sigset, "sigset", false)

EDGE int sigignore(int signal_);

int sigignore(int signal_)
{
	FIND(sigignore, "sigignore");
	if (signal_ != 0 && signal_ == hidden()) {
		set_program_handler(SIG_IGN);
		return 0;
	}
	if (signal_ == SIGTRAP && trap_is_on()) {
		set_trap_handler(SIG_IGN);
		return 0;
	}
	if (edge_asked_is(signal_))
		return set_asked_handler(signal_, SIG_IGN, 0, true) == SIG_ERR ?
			       -1 :
			       0;
	return real.sigignore ? real.sigignore(signal_) : -1;
}

EDGE int siginterrupt(int signal_, int flag);

int siginterrupt(int signal_, int flag)
{
	uint64_t mask = 0;
	bool begun;
	int result;

	FIND(siginterrupt, "siginterrupt");
	if (signal_ != 0 && signal_ == hidden())
		return 0;
	if (signal_ == SIGTRAP && trap_is_on())
		return 0;
	if (edge_asked_is(signal_)) {
		struct sigaction action;

		sigaction(signal_, NULL, &action);
		action.sa_flags &= ~SA_RESTART;
		action.sa_flags |= flag ? 0 : SA_RESTART;
		return sigaction(signal_, &action, NULL);
	}
	if (hidden() == 0 || !real.siginterrupt)
		return real.siginterrupt ? real.siginterrupt(signal_, flag) :
					   -1;
	begun = resume_set_begin(&mask);
	result = real.siginterrupt(signal_, flag);
	if (result == 0)
		resume_watch_handlers_of(signal_);
	if (begun)
		resume_set_end(mask);
	return result;
}

/* --- masks --- */

/* A callback in our handler, where the program is shown a mask without our signal,
 * may well set it again: the next sample would come into this one. */
static const sigset_t *for_mask(int how, const sigset_t *set, sigset_t *copy)
{
	int signal = hidden();

	if (how != SIG_SETMASK || !set || !signal || !thread_current ||
	    !thread_current->sample_context)
		return without(set, copy);
	*copy = *set;
	*bits_of(copy) &= ~hidden_bits();
	*bits_of(copy) |= bit_of(signal);
	return copy;
}

/* What the program has made of the trap's signal: it was blocked before. */
static bool change_trap(int how, const sigset_t *set)
{
	bool before = trap_is_blocked();

	if (!trap_is_on() || !set)
		return before;
	if (how == SIG_SETMASK)
		trap_block(has_trap(set));
	else if (has_trap(set))
		trap_block(how == SIG_BLOCK);
	return before;
}

EDGE int sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
	sigset_t copy;
	int result;

	FIND(sigprocmask, "sigprocmask");
	if (!real.sigprocmask) {
		errno = ENOSYS;
		return -1;
	}
	if (hidden_bits() == 0) {
		result = real.sigprocmask(how, set, before);
		if (set && trap_is_on())
			trap_adopt();
		return result;
	}
	result = real.sigprocmask(how, for_mask(how, set, &copy), before);
	remove_from(before);
	if (result == 0 && trap_is_on())
		show_trap(before, change_trap(how, set));
	return result;
}

EDGE int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
	sigset_t copy;
	int result;

	FIND(pthread_sigmask, "pthread_sigmask");
	if (!real.pthread_sigmask)
		return ENOSYS;
	if (hidden_bits() == 0) {
		result = real.pthread_sigmask(how, set, before);
		if (set && trap_is_on())
			trap_adopt();
		return result;
	}
	result = real.pthread_sigmask(how, for_mask(how, set, &copy), before);
	remove_from(before);
	if (result == 0 && trap_is_on())
		show_trap(before, change_trap(how, set));
	return result;
}

EDGE int sigpending(sigset_t *set)
{
	int result;

	FIND(sigpending, "sigpending");
	result = real.sigpending ? real.sigpending(set) : -1;
	if (result == 0) {
		remove_from(set);
		show_trap(set, trap_is_on() && trap_is_pending());
	}
	return result;
}

/* --- waiting --- */

/* Who waits for that signal alone gets it, and we have none any more. */
static void wait_for(const sigset_t *set)
{
	if (set && trap_is_on() && *bits_of((sigset_t *)set) == bit_of(SIGTRAP))
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
	wait_for(set);
	return real.signalfd(fd, without(set, &copy), flags);
}

EDGE int sigwait(const sigset_t *set, int *signal_)
{
	sigset_t copy;

	FIND(sigwait, "sigwait");
	if (!real.sigwait)
		return ENOSYS;
	wait_for(set);
	return real.sigwait(without(set, &copy), signal_);
}

EDGE int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	sigset_t copy;

	FIND(sigwaitinfo, "sigwaitinfo");
	if (!real.sigwaitinfo) {
		errno = ENOSYS;
		return -1;
	}
	wait_for(set);
	return real.sigwaitinfo(without(set, &copy), info);
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
	wait_for(set);
	return real.sigtimedwait(without(set, &copy), info, timeout);
}

/* --- the signal stack that we may have given the thread --- */

EDGE int sigaltstack(const stack_t *stack, stack_t *before)
{
	stack_t old;
	bool ours;

	FIND(sigaltstack, "sigaltstack");
	if (!real.sigaltstack) {
		errno = ENOSYS;
		return -1;
	}
	if (hidden_bits() == 0 || real.sigaltstack(NULL, &old) != 0)
		return real.sigaltstack(stack, before);
	ours = sample_is_our_stack(old.ss_sp);
	/* To have none is what it believes to have. */
	if (ours && stack && (stack->ss_flags & SS_DISABLE))
		stack = NULL;
	if (real.sigaltstack(stack, before) != 0)
		return -1;
	if (ours && before)
		*before = (stack_t){ .ss_flags = SS_DISABLE };
	return 0;
}

/* --- SIGRTMAX --- */

EDGE int __libc_current_sigrtmax(void)
{
	int last;

	FIND(current_sigrtmax, "__libc_current_sigrtmax");
	last = real.current_sigrtmax ? real.current_sigrtmax() : 64;
	return last == hidden() ? last - 1 : last;
}

/* In the constructor: some are called in signal handlers. */
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
	FIND(current_sigrtmax, "__libc_current_sigrtmax");
}
