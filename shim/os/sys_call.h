/*
 * One system call, as a raw instruction: for the files of sys.h alone.  libc's wrappers
 * set errno, may be interposed by the program, and are cancellation points.
 */
#ifndef SHIM_SYS_CALL_H
#define SHIM_SYS_CALL_H

#include "arch.h"

#include <errno.h>
#include <stdbool.h>

/* The program has forbidden system calls (sys_forbid). */
extern bool sys_forbidden __attribute__((visibility("hidden")));
/* It is about to: work that other threads have begun ends first. */
extern bool sys_closing __attribute__((visibility("hidden")));

static inline long sys_call(long number, long a, long b, long c, long d, long e,
			    long f)
{
	if (sys_forbidden)
		return -EPERM;
	return arch_syscall(number, a, b, c, d, e, f);
}

#define TRIES 3

/* Repeats a call that fails for a reason that may pass. */
static inline long sys_retry(long number, long a, long b, long c, long d,
			     long e, long f)
{
	long r = -EINTR;

	for (int i = 0;
	     i < TRIES && (r == -EINTR || r == -EAGAIN || r == -ENOMEM); i++)
		r = sys_call(number, a, b, c, d, e, f);
	return r;
}

/* Repeats a call that only a tracer or a sandbox can refuse.  shim cannot work without
 * these calls. */
static inline long sys_insist(long number, long a, long b, long c, long d)
{
	long r = -EPERM;

	for (int i = 0; i < TRIES && r < 0; i++)
		r = sys_call(number, a, b, c, d, 0, 0);
	return r;
}

#endif
