/* The memory of a running process, and copies of its threads' stacks. */
#ifndef PROCESS_PROCESS_MEMORY_H
#define PROCESS_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "process/space.h"
#include "process/stop_wait.h"
#include "process/target.h"

struct process_memory {
	struct space space; /* first */
	const struct target *target;
	uint64_t known;	  /* a hash of the mappings */
	bool is_repeated; /* threads are stopped again and again */
};

/* Reads the mappings of @target.  False if the process has ended.  *@changed tells
 * whether the modules have changed. */
bool process_memory_read(struct process_memory *memory, bool *changed);

/* The most bytes of a stack that are copied while its thread is stopped. */
#define STACK_COPY_MAX (1u << 20)

/* A thread at one moment. */
struct stopped {
	struct user_regs_struct registers;
	uint64_t stack;	   /* address of the copied bytes */
	size_t stack_size; /* number of the copied bytes */
	unsigned char
		*bytes; /* STACK_COPY_MAX bytes, which the caller provides */
	uint64_t stopped_ns; /* the time that the thread was stopped */
};

/* Stops @tid, copies its registers and its stack, and lets it continue. */
enum stop_result process_memory_stop(struct process_memory *memory, pid_t tid,
				     struct stopped *stopped);

#endif
