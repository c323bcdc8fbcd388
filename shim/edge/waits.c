/*
 * Wrappers of functions that set a signal mask during a call, or for a function of the
 * program.  They remove shim's signals from the mask (runtime/hidden_signals.h),
 * because handlers may run during the call and hit traps.  While shim has no signals,
 * each wrapper costs one comparison.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "coverage/coverage.h"
#include "os/lookup.h"
#include "runtime/hidden_signals.h"
#include "runtime/state.h"
#include "sampling/sample.h"

#include <errno.h>
#include <poll.h>
#include <shim/record.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <time.h>

#include <shim/banned.h>

#define FIND(pointer, name) \
	(pointer ? (void)0 : (void)(*(void **)&pointer = lookup_real(name)))

static int (*real_sigsuspend)(const sigset_t *);
static int (*real_pselect)(int, fd_set *, fd_set *, fd_set *,
			   const struct timespec *, const sigset_t *);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *,
			 const sigset_t *);
static int (*real_epoll_pwait)(int, struct epoll_event *, int, int,
			       const sigset_t *);
static int (*real_timer_create)(clockid_t, struct sigevent *, timer_t *);

static int missing(void)
{
	errno = ENOSYS;
	return -1;
}

EDGE int sigsuspend(const sigset_t *set)
{
	sigset_t copy;

	FIND(real_sigsuspend, "sigsuspend");
	return real_sigsuspend ?
		       real_sigsuspend(edge_signals_without(set, &copy)) :
		       missing();
}

EDGE int pselect(int count, fd_set *in, fd_set *out, fd_set *other,
		 const struct timespec *timeout, const sigset_t *set)
{
	sigset_t copy;

	FIND(real_pselect, "pselect");
	return real_pselect ? real_pselect(count, in, out, other, timeout,
					   edge_signals_without(set, &copy)) :
			      missing();
}

EDGE int ppoll(struct pollfd *files, nfds_t count,
	       const struct timespec *timeout, const sigset_t *set)
{
	sigset_t copy;

	FIND(real_ppoll, "ppoll");
	return real_ppoll ? real_ppoll(files, count, timeout,
				       edge_signals_without(set, &copy)) :
			    missing();
}

EDGE int __ppoll_chk(struct pollfd *files, nfds_t count,
		     const struct timespec *timeout, const sigset_t *set,
		     size_t size);

int __ppoll_chk(struct pollfd *files, nfds_t count,
		const struct timespec *timeout, const sigset_t *set,
		size_t size)
{
	static int (*real)(struct pollfd *, nfds_t, const struct timespec *,
			   const sigset_t *, size_t);
	sigset_t copy;

	FIND(real, "__ppoll_chk");
	return real ? real(files, count, timeout,
			   edge_signals_without(set, &copy), size) :
		      missing();
}

EDGE int epoll_pwait(int fd, struct epoll_event *events, int count, int timeout,
		     const sigset_t *set)
{
	sigset_t copy;

	FIND(real_epoll_pwait, "epoll_pwait");
	return real_epoll_pwait ?
		       real_epoll_pwait(fd, events, count, timeout,
					edge_signals_without(set, &copy)) :
		       missing();
}

EDGE int epoll_pwait2(int fd, struct epoll_event *events, int count,
		      const struct timespec *timeout, const sigset_t *set)
{
	static int (*real)(int, struct epoll_event *, int,
			   const struct timespec *, const sigset_t *);
	sigset_t copy;

	FIND(real, "epoll_pwait2");
	return real ? real(fd, events, count, timeout,
			   edge_signals_without(set, &copy)) :
		      missing();
}

/* --- timers with SIGEV_THREAD --- */

/* A function of the program and its argument.  libc calls it in a thread that it
 * creates with all signals blocked. */
struct timer_call {
	struct timer_call *next;
	void (*function)(union sigval value);
	union sigval value;
};

static struct timer_call *timer_calls;

static void begin_timer_call(union sigval ours)
{
	const struct timer_call *call = ours.sival_ptr;

	hidden_thread_begins(0);
	call->function(call->value);
}

static struct timer_call *keep_timer_call(const struct sigevent *event)
{
	struct timer_call *first = __atomic_load_n(&timer_calls,
						   __ATOMIC_ACQUIRE),
			  *call;

	for (call = first; call; call = call->next)
		if (call->function == event->sigev_notify_function &&
		    call->value.sival_ptr == event->sigev_value.sival_ptr)
			return call;
	call = shim_memory_map(sizeof(*call));
	if (!call)
		return NULL;
	call->function = event->sigev_notify_function;
	call->value = event->sigev_value;
	call->next = first;
	while (!__atomic_compare_exchange_n(&timer_calls, &call->next, call,
					    false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	return call;
}

EDGE int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
	struct timer_call *call = NULL;
	struct sigevent given;
	int result;

	FIND(real_timer_create, "timer_create");
	if (!real_timer_create)
		return missing();
	if (event && event->sigev_notify == SIGEV_THREAD &&
	    state_get() == STATE_RUNNING)
		call = keep_timer_call(event);
	if (!call)
		return real_timer_create(clock, event, timer);
	given = *event;
	given.sigev_notify_function = begin_timer_call;
	given.sigev_value.sival_ptr = call;
	result = real_timer_create(clock, &given, timer);
	sample_signal_keep();
	return result;
}

/* A traced thread stops at shim's traps and signals.  Its tracer would regard them as the
 * program's, or is a parent that knows nothing of the tracing and never lets the thread go
 * on.  A child of vfork has no timers of its own. */
EDGE long ptrace(enum __ptrace_request request, ...)
{
	static const char reason[] = "the program called PTRACE_TRACEME";
	static long (*real)(enum __ptrace_request, ...);
	void *a, *b, *c;
	va_list arguments;

	va_start(arguments, request);
	a = va_arg(arguments, void *);
	b = va_arg(arguments, void *);
	c = va_arg(arguments, void *);
	va_end(arguments);
	if (request == PTRACE_TRACEME)
		coverage_give_up(reason);
	if (request == PTRACE_TRACEME && !edge_is_vfork_child())
		sample_end(reason);
	FIND(real, "ptrace");
	return real ? real(request, a, b, c) : missing();
}

/* Runs in the constructor, because signal handlers may call some of these functions. */
void edge_waits_resolve(void)
{
	FIND(real_sigsuspend, "sigsuspend");
	FIND(real_pselect, "pselect");
	FIND(real_ppoll, "ppoll");
	FIND(real_epoll_pwait, "epoll_pwait");
}
