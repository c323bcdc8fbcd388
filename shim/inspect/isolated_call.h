/*
 * Runs code that may crash on damaged input in a process of its own, which shares the
 * memory of the program but cannot end it.
 */
#ifndef SHIM_ISOLATED_CALL_H
#define SHIM_ISOLATED_CALL_H

#include <stddef.h>

/*
 * Calls call(argument) on the calling thread's stack, in a child process, and waits for
 * it; all signals must be blocked.  @stack of @size bytes is for the signal that ends
 * the child.  The program sees the child only by waiting for all kinds of children
 * (__WALL) meanwhile.
 *
 * Returns 0 and the result of the call in *@result; -EFAULT if it crashed, -ETIME if it
 * took more than some seconds; another -errno if no process can be created.  After
 * -EFAULT and -ETIME, data that the call was changing is half changed, and its memory
 * is lost.
 */
int isolated_call(int (*call)(void *argument), void *argument, void *stack,
		  size_t size, int *result);

#endif
