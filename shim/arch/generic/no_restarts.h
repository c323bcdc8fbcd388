/*
 * For processors on which shim does not find interrupted system calls.  The kernel provides
 * the return from a signal handler.
 */
#ifndef SHIM_ARCH_NO_RESTARTS_H
#define SHIM_ARCH_NO_RESTARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARCH_HAS_RESTORER 0
static inline void arch_signal_return(void)
{
}
static inline void arch_signal_return_restarts(void)
{
}
static inline void arch_signal_return_fails(void)
{
}

struct arch_call {
	long number;
	long arguments[6];
	bool failed;
	long part;
};

#define ARCH_RESTARTS (-512)
static inline long arch_call_with_mask(const struct arch_call *call,
				       const uint64_t *mask)
{
	(void)call;
	(void)mask;
	return -38; /* ENOSYS */
}

#define ARCH_FIND_CALL(context, call, read) \
	((void)(context), (void)(call), (void)(read), false)
#define ARCH_SET_RESULT(context, call, result) \
	((void)(context), (void)(call), (void)(result))

static inline void *arch_copy_frame(const void *context, uintptr_t end,
				    int (*copy)(const void *, void *, size_t))
{
	(void)context, (void)end, (void)copy;
	return NULL;
}

static inline __attribute__((noreturn)) void
arch_go_on(void *context, const void *argument,
	   void (*function)(void *context, const void *argument))
{
	(void)context, (void)argument, (void)function;
	__builtin_trap();
}

#endif
