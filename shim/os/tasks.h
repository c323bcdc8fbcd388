/*
 * The tasks of the process, listed by the kernel; shim may not have seen them
 * yet.
 */
#ifndef SHIM_TASKS_H
#define SHIM_TASKS_H

#include <stdbool.h>
#include <stdint.h>

/* Calls each(tid, argument) for every task until it returns false.  Returns
 * 0; 1 if @each ended the list; -errno if not all tasks were listed. */
int tasks_each(bool (*each)(uint32_t tid, void *argument), void *argument);

/* The signal mask of a task; -errno if the task has ended or the kernel refuses. */
int tasks_blocked(uint32_t tid, uint64_t *signals);

#endif
