/*
 * Stops the threads of a process that run, while one thread makes the calls of an attach.
 * They would take the processors from it: among 500 threads that run, a thread gets one
 * every half second.
 */
#ifndef PROCESS_OTHERS_H
#define PROCESS_OTHERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct other;

struct others {
	struct other *list;
	uint32_t count, room;
	uint64_t since; /* the time of the first stop; 0: none was stopped */
	uint64_t stopped_ns; /* others_stopped_ns() up to the last release */
};

/* Adds a thread to those that others_stop() stops. */
void others_add(struct others *others, pid_t tid);
/*
 * others_stop - stops them
 *
 * Does not wait for those that sleep in the kernel, or that wait for a processor: these
 * stop before their next instruction.
 */
void others_stop(struct others *others);
/* How long they were stopped, in sum. */
uint64_t others_stopped_ns(const struct others *others);
/* Whether @tid was added. */
bool others_have(const struct others *others, pid_t tid);
/* Waits until @tid, which was added, is stopped.  False if it is not, or if a signal waits
 * for it. */
bool others_await(struct others *others, pid_t tid);
/* The caller lets @tid go on. */
void others_remove(struct others *others, pid_t tid);
/* Whether a stopped thread, which has these registers, shall go on. */
typedef bool others_choice(pid_t tid, const struct user_regs_struct *now,
			   void *argument);
/* Lets those go on that @choice chooses: of those that have stopped since the last time, or
 * of all if @again. */
void others_release_some(struct others *others, pid_t pid, bool again,
			 others_choice *choice, void *argument);
/* Lets all that are stopped go on. */
void others_release(struct others *others, pid_t pid);
/* Does the same, also with those that were not waited for, and empties the list. */
void others_finish(struct others *others, pid_t pid);

#endif
