/*
 * The tasks of the process as the kernel lists them: also those that we have not met.
 */
#ifndef SHIM_TASKS_H
#define SHIM_TASKS_H

#include <stdbool.h>
#include <stdint.h>

/* Calls each(tid, argument) for every task until it says false.  0, 1 if @each has
 * ended it, or -errno: not all were listed. */
int tasks_each(bool (*each)(uint32_t tid, void *argument), void *argument);

/* The signals that the task blocks; -errno: it has gone, or that is not told. */
int tasks_blocked(uint32_t tid, uint64_t *signals);

#endif
