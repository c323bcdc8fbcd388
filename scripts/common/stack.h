/* A stack that is large enough for shim's programs, whatever the shell's limit is.  The
 * profiled program keeps that limit. */
#ifndef COMMON_STACK_H
#define COMMON_STACK_H

/*
 * stack_call - call @run; main() does nothing else
 *
 * Switches to a new stack if the current one is smaller than 1 MiB and memory is
 * available.  Threads that are made with default attributes have 1 MiB as well.
 *
 * Returns the result of @run.
 */
int stack_call(int (*run)(int argc, char **argv), int argc, char **argv);

#endif
