/* Which process is meant, and whether it can be looked at: one message if it cannot. */
#ifndef PROCESS_TARGET_H
#define PROCESS_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A process of the system, as /proc tells of it. */
struct target {
	pid_t pid;
	char name[64]; /* of its main thread */
};

/*
 * target_open - fill @target for the process @pid
 *
 * Dies with what is wrong, and what helps, if there is no such process, or if it is a
 * thread, a zombie, a kernel thread, a 32-bit program, ourselves or traced by others.
 */
void target_open(struct target *target, pid_t pid);

/* Whether it is still there, and not a zombie. */
bool target_is_alive(const struct target *target);

/* Dies: the kernel did not let us trace @target, with @error.  Says what to do. */
_Noreturn void target_refused(const struct target *target, int error);

/* A thread's name and state (the letter of /proc); false: it is gone. */
bool target_thread(const struct target *target, pid_t tid, char name[64],
		   char *state);

/* The threads of it, of which there are *@count; NULL: it is gone.  The caller frees. */
pid_t *target_threads(const struct target *target, uint32_t *count);

#endif
