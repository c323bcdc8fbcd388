/* A stack that is large enough for us, whatever the limit of the shell is, which the
 * program keeps. */
#ifndef COMMON_STACK_H
#define COMMON_STACK_H

/*
 * stack_call - call @run, which main() does nothing besides
 *
 * On a stack of our own if ours is smaller than 1 MiB and memory can be had.  Threads
 * that are made with default attributes have 1 MiB as well.
 *
 * Returns what @run does.
 */
int stack_call(int (*run)(int argc, char **argv), int argc, char **argv);

#endif
