/*
 * What blocks signals for the length of a call, or of a thread's beginning: the
 * trap's signal stays out of it (trap.h), for handlers may run meanwhile, and run
 * into traps.  While no line is looked at each of these is one comparison.
 */
#define _GNU_SOURCE
#include "edge.h"

#include "coverage.h"
#include "trap.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/select.h>

#include <shim/banned.h>

#define FIND(pointer, name)                                                    \
	(pointer ? (void)0 : (void)(*(void **)&pointer = edge_next(name)))

static int (*real_sigsuspend)(const sigset_t *);
static int (*real_pselect)(int, fd_set *, fd_set *, fd_set *,
			   const struct timespec *, const sigset_t *);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *,
			 const sigset_t *);
static int (*real_epoll_pwait)(int, struct epoll_event *, int, int,
			       const sigset_t *);
static int (*real_setsigmask)(pthread_attr_t *, const sigset_t *);

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

EDGE int pthread_attr_setsigmask_np(pthread_attr_t *attributes,
				    const sigset_t *set)
{
	sigset_t copy;

	FIND(real_setsigmask, "pthread_attr_setsigmask_np");
	return real_setsigmask ?
		       real_setsigmask(attributes,
				       edge_signals_without(set, &copy)) :
		       ENOSYS;
}

/* A thread that is traced stops at traps, and its tracer takes them for its own. */
EDGE long ptrace(enum __ptrace_request request, ...)
{
	static long (*real)(enum __ptrace_request, ...);
	void *a, *b, *c;
	va_list arguments;

	va_start(arguments, request);
	a = va_arg(arguments, void *);
	b = va_arg(arguments, void *);
	c = va_arg(arguments, void *);
	va_end(arguments);
	if (request == PTRACE_TRACEME)
		coverage_give_up("the program lets itself be traced");
	FIND(real, "ptrace");
	return real ? real(request, a, b, c) : missing();
}

/* In the constructor: some are called in signal handlers. */
void edge_waits_resolve(void)
{
	FIND(real_sigsuspend, "sigsuspend");
	FIND(real_pselect, "pselect");
	FIND(real_ppoll, "ppoll");
	FIND(real_epoll_pwait, "epoll_pwait");
}
