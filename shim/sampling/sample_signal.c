/*
 * The signal of samples is the signal that libc sends to all threads in setuid and
 * similar functions.  libc refuses to set, block or handle it for the program, so shim
 * takes no signal that the program can use.
 *
 * 	libc sets its action in the first pthread_create	sample_signal_keep
 * 	libc waits until each thread has handled its signal	sample_ids_change_begins
 *
 * Until sample_signal_keep, libc's handler ignores the signals of timers.
 */
#include "sampling/sample.h"

#include "arch.h"
#include "os/sys.h"
#include "runtime/hidden_signals.h"
#include "runtime/runtime_threads.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <ucontext.h>

#include <shim/banned.h>

#define SETXID	    33
#define CANCEL	    32
#define SIGNAL_LAST 64

int sample_signal;
struct sys_action sample_program_action;

static struct sys_action own_action;

/*
 * The handler blocks all signals but those that are ignored.  If the main thread blocks such
 * a signal, the kernel wakes another thread for it, whose epoll_wait(2) would fail with
 * EINTR: with SIGCHLD that is each child that ends.
 */
#define IGNORED_BY_DEFAULT \
	(hidden_bit(SIGCHLD) | hidden_bit(SIGCONT) | hidden_bit(SIGURG) | \
	 hidden_bit(SIGWINCH))

static bool is_ignored(int signal, const void *handler)
{
	return handler == (void *)SIG_IGN ||
	       (handler == (void *)SIG_DFL &&
		(IGNORED_BY_DEFAULT & hidden_bit(signal)));
}

static bool is_ignored_now(int signal)
{
	struct sys_action action;

	return sys_signal_action(signal, NULL, &action) == 0 &&
	       is_ignored(signal, action.handler);
}

static uint64_t mask_for_handler(void)
{
	/* Stores into the recording's files may raise SIGBUS. */
	uint64_t mask = ~hidden_bit(SIGBUS);

	for (int signal = 1; signal <= SIGNAL_LAST; signal++)
		if (signal != SETXID && is_ignored_now(signal))
			mask &= ~hidden_bit(signal);
	return mask;
}

static void set_mask(uint64_t mask)
{
	struct sys_action now;

	if (mask == own_action.mask || sys_is_forbidden() ||
	    sys_signal_action(SETXID, NULL, &now) < 0)
		return;
	own_action.mask = mask;
	/* If it is libc's, sample_signal_keep sets it. */
	if (now.handler == own_action.handler)
		sys_signal_action(SETXID, &own_action, NULL);
}

/* A signal is blocked before it has a handler, until after that. */
static void follow_action(const struct sample_action *action, bool is_before)
{
	uint64_t mask = own_action.mask, bit;

	if (action->signal < 1 || action->signal > SIGNAL_LAST ||
	    action->signal == SIGBUS || action->handler == (void *)SIG_ERR ||
	    is_ignored(action->signal, action->handler) == is_before)
		return;
	bit = hidden_bit(action->signal);
	set_mask(is_before ? mask | bit : mask & ~bit);
}

/* One change takes several steps: that of another thread could be lost otherwise. */
static uint32_t is_setting;

void sample_action_begin(struct sample_action *action)
{
	if (action->is_alone)
		action->is_alone = !sys_is_forbidden() &&
				   sys_block_signals(&action->mask) == 0;
	while (action->is_alone &&
	       __atomic_exchange_n(&is_setting, 1, __ATOMIC_ACQUIRE) != 0)
		sys_yield();
	follow_action(action, true);
}

void sample_action_end(const struct sample_action *action, bool is_set)
{
	if (is_set) {
		syscall_restart_watch_handlers_of(action->signal);
		follow_action(action, false);
	}
	if (!action->is_alone)
		return;
	__atomic_store_n(&is_setting, 0, __ATOMIC_RELEASE);
	sys_restore_signals(action->mask);
}

int sample_signal_take(void *handler)
{
	int r;

	own_action = (struct sys_action){
		.handler = handler,
		.flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK |
			 ARCH_HAS_RESTORER,
		.restorer = arch_signal_return,
		.mask = mask_for_handler(),
	};
	r = sys_signal_action(SETXID, &own_action, &sample_program_action);
	if (r < 0)
		return r;
	__atomic_store_n(&sample_signal, SETXID, __ATOMIC_RELEASE);
	hidden_take(SETXID);
	for (int other = 1; other <= SIGNAL_LAST; other++)
		syscall_restart_watch_handlers_of(other);
	return 0;
}

static int keep_locked(void *unused)
{
	struct sys_action now;

	(void)unused;
	if (sys_signal_action(SETXID, NULL, &now) < 0 ||
	    now.handler == own_action.handler)
		return 0;
	sample_program_action = now;
	return sys_signal_action(SETXID, &own_action, NULL);
}

void sample_signal_keep(void)
{
	struct sys_action now;

	if (__atomic_load_n(&sample_signal, __ATOMIC_ACQUIRE) == 0 ||
	    sys_is_forbidden() || sys_signal_action(SETXID, NULL, &now) < 0 ||
	    now.handler == own_action.handler)
		return;
	state_call_locked(keep_locked, NULL);
}

SUBSCRIBE(runtime_thread_created, sample_signal_keep);

/* --- setuid and similar functions --- */

/*
 * A thread whose system call shim continues has the signal blocked, perhaps for hours.
 * shim sends such a thread the signal of pthread_cancel, which the program cannot block
 * either; its handler unblocks the signal of setuid.
 */
static uint32_t changes; /* running set*id calls */
static char wake_value;
static struct sys_action cancel_action;

uint64_t sample_signal_rest_mask(void)
{
	return __atomic_load_n(&changes, __ATOMIC_SEQ_CST) ?
		       0 :
		       hidden_bit(sample_signal);
}

typedef void (*signal_handler)(int signal, siginfo_t *info, void *context);

static void wake(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	if (info->si_code == SI_QUEUE &&
	    info->si_value.sival_ptr == &wake_value)
		*(uint64_t *)&interrupted->uc_sigmask &= ~hidden_bit(SETXID);
	else if (cancel_action.handler != (void *)SIG_DFL &&
		 cancel_action.handler != (void *)SIG_IGN)
		((signal_handler)cancel_action.handler)(signal, info, context);
}

/* libc sets its action in the first pthread_cancel. */
static int catch_wakes(void)
{
	struct sys_action now;
	int r = sys_signal_action(CANCEL, NULL, &now);

	if (r < 0 || now.handler == (void *)wake)
		return r;
	cancel_action = now;
	now.handler = (void *)wake;
	if (cancel_action.handler == (void *)SIG_DFL ||
	    cancel_action.handler == (void *)SIG_IGN) {
		now.flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK |
			    ARCH_HAS_RESTORER;
		now.restorer = arch_signal_return;
		now.mask = 0;
	}
	return sys_signal_action(CANCEL, &now, NULL);
}

static bool wake_each(struct thread *thread, void *unused)
{
	(void)unused;
	if (!(thread->state & THREAD_ENDED) &&
	    (__atomic_load_n(&thread->rests, __ATOMIC_SEQ_CST) & 1))
		sys_queue_signal((int)thread->tid, CANCEL, &wake_value);
	return true;
}

static int wake_all(void *unused)
{
	(void)unused;
	if (catch_wakes() == 0)
		thread_each(wake_each, NULL);
	return 0;
}

bool sample_ids_change_begins(void)
{
	if (__atomic_load_n(&sample_signal, __ATOMIC_ACQUIRE) == 0 ||
	    sys_is_forbidden())
		return false;
	__atomic_add_fetch(&changes, 1, __ATOMIC_SEQ_CST);
	state_call_locked(wake_all, NULL);
	return true;
}

void sample_ids_change_ends(void)
{
	__atomic_sub_fetch(&changes, 1, __ATOMIC_SEQ_CST);
}

void sample_signal_forked(void)
{
	changes = 0;
	is_setting = 0;
}
