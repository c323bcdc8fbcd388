/*
 * Runs code that may crash on damaged input in a child process.  The child shares the
 * memory of the program, but its crash does not end the program.
 */
#ifndef SHIM_ISOLATED_CALL_H
#define SHIM_ISOLATED_CALL_H

#include <stddef.h>

/*
 * Calls call(argument) on the calling thread's stack, in a child process, and waits for
 * the child.  All signals must be blocked.  @stack of @size bytes is the stack for the
 * signal that ends the child.  The program sees the child only by waiting for all kinds
 * of children (__WALL) meanwhile.
 *
 * Returns 0 and the result of the call in *@result; -EFAULT if the call crashed; -ETIME
 * if it took more than 4 seconds of processor time, or 30 seconds; another -errno if no
 * process can be created.  After -EFAULT and -ETIME, data that the call was changing is
 * inconsistent, and the memory that it allocated is lost.
 */
int isolated_call(int (*call)(void *argument), void *argument, void *stack,
		  size_t size, int *result);

#endif
