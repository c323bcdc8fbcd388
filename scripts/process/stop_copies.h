/* Stops the threads of a process, each only while its registers and its stack are
 * copied. */
#ifndef PROCESS_STOP_COPIES_H
#define PROCESS_STOP_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "process/process_memory.h"
#include "process/stop_wait.h"

/* The most bytes of a stack that are copied while its thread is stopped. */
#define STACK_COPY_MAX (1u << 20)

/* A thread at one moment. */
struct stopped {
	pid_t tid;
	bool is_running; /* when it was chosen, not asleep */
	enum stop_result result;
	int error; /* errno, with STOP_REFUSED */
	struct user_regs_struct registers;
	uint64_t stack;	      /* address of the copied bytes */
	size_t stack_size;    /* number of the copied bytes */
	unsigned char *bytes; /* the copy, which the caller frees */
	uint64_t stopped_ns;  /* no longer than this the thread was stopped */
	/* of stop_copies.c */
	uint64_t asked_ns; /* when it was asked to stop; 0: not yet */
	uint64_t since_ns; /* it was not stopped before */
	int status;	   /* of its stop */
	bool is_held;	   /* it is stopped, and not yet copied */
	bool is_over;	   /* it goes on, or is held, or has ended */
};

/*
 * stop_copies - copies registers and stacks of @threads, which are sorted by their tid
 *
 * Each thread goes on as soon as it is copied.  Returns the number of threads that are
 * done: fewer than @count if the copies would need too much memory.
 */
uint32_t stop_copies(struct process_memory *memory, struct stopped *threads,
		     uint32_t count);

#endif
