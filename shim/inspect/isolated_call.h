/*
 * Running code that may fail badly, because of what it reads, apart from the
 * program: in a process that shares our memory and nothing that could end us.
 */
#ifndef SHIM_ISOLATED_CALL_H
#define SHIM_ISOLATED_CALL_H

#include <stddef.h>

/*
 * Calls call(argument) on the calling thread's stack, in a process of its own,
 * and waits for it; all signals must be blocked.  @stack of @size bytes is for
 * the signal that ends it.  Who looks for children, sees one only by asking for
 * all kinds (__WALL), and only meanwhile.
 *
 * Returns 0 and what the call returned in *@result; -EFAULT if it crashed,
 * -ETIME if it took more than some seconds: then whatever the call was changing
 * is half changed, and its memory is lost; another -errno if no process can be
 * made.
 */
int isolated_call(int (*call)(void *argument), void *argument, void *stack,
	       size_t size, int *result);

#endif
