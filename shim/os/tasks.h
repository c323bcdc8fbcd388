/*
 * The tasks of the process, listed by the kernel.  The list also has tasks that shim does
 * not know yet.
 */
#ifndef SHIM_TASKS_H
#define SHIM_TASKS_H

#include <stdbool.h>
#include <stdint.h>

/* Calls each(tid, argument) for every task until @each returns false.  Returns 0; 1 if
 * @each has returned false; -errno if not all tasks could be read. */
int tasks_each(bool (*each)(uint32_t tid, void *argument), void *argument);

/* Stores the signal mask of a task in *@signals.  Returns 0; -errno if the task has ended
 * or the kernel refuses. */
int tasks_blocked(uint32_t tid, uint64_t *signals);

/* The id of the process that traces a task (ptrace(2)); 0 if no process does, or if the id cannot
 * be read. */
uint32_t tasks_tracer(uint32_t tid);

/* Whether a task waits for something but a processor or a device; true if that is unknown,
 * and if the task has ended. */
bool tasks_is_asleep(uint32_t tid);

/* How often the task got a processor; 0 if that is unknown. */
uint64_t tasks_runs(uint32_t tid);

enum task_call {
	TASK_CALL_NONE, /* the task is in none, or that is unknown */
	TASK_CALL_RUNS, /* it may be in one: it has a processor, or waits for one */
	TASK_CALL_KNOWN,
};

/* The system call that a task is in: its number, its six arguments, the stack pointer, the
 * address of the next instruction.  They are stored only if the call is known. */
#define TASKS_CALL_WORDS 9
enum task_call tasks_call(uint32_t tid, uint64_t words[TASKS_CALL_WORDS]);

/* Whether the process has one task; false if that is unknown. */
bool tasks_are_one(void);

#endif
