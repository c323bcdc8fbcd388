/* Finds the process that the user means.  If it cannot be read, one message gives the
 * reason. */
#ifndef PROCESS_TARGET_H
#define PROCESS_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A process, as /proc describes it. */
struct target {
	pid_t pid;
	char name[64]; /* of its main thread */
};

/*
 * target_open - fill @target for the process @pid
 *
 * Dies with the reason and a remedy if the process does not exist, or if it is a
 * thread, a zombie, a kernel thread, a 32-bit program, this process, or traced by
 * another process.
 */
void target_open(struct target *target, pid_t pid);

/* Whether the process still runs, and is not a zombie. */
bool target_is_alive(const struct target *target);

/* Stores the prefix for the process's file names; "" if it sees the same files. */
void target_root(pid_t pid, char root[32]);

/* Whether both names lead to one file.  Also true if one of them leads to none. */
bool target_is_same_file(const char *left, const char *right);

/* Dies with the reason why the kernel refused to trace @target, with @error, and with a
 * remedy. */
_Noreturn void target_refused(const struct target *target, int error);

/* A thread's name and state (the letter of /proc); false if the thread has ended. */
bool target_thread(const struct target *target, pid_t tid, char name[64],
		   char *state);

/* The *@count threads of the process; NULL if it has ended.  The caller frees the
 * array. */
pid_t *target_threads(const struct target *target, uint32_t *count);

#endif
