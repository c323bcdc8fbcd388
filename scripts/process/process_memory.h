/* The memory of a running process, and copies of its threads' stacks. */
#ifndef PROCESS_PROCESS_MEMORY_H
#define PROCESS_PROCESS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "process/space.h"
#include "process/target.h"

struct process_memory {
	struct space space; /* first */
	const struct target *target;
	uint64_t known; /* what is mapped, as one number */
};

/* What @target has mapped now.  False: it is gone.  *@changed: modules are other ones. */
bool process_memory_read(struct process_memory *memory, bool *changed);

/* At most so much of a stack is copied while its thread is stopped. */
#define STACK_COPY_MAX (1u << 20)

enum stop_result {
	STOP_DONE,
	STOP_GONE,   /* the thread has ended */
	STOP_STUCK,  /* it sleeps in the kernel and cannot be stopped */
	STOP_REFUSED /* errno says why */
};

/* A thread at one moment. */
struct stopped {
	struct user_regs_struct registers;
	uint64_t stack;	      /* address of what was copied ... */
	size_t stack_size;    /* ... and how much that is */
	unsigned char *bytes; /* STACK_COPY_MAX of the caller's */
	uint64_t stopped_ns;  /* how long it stood still */
};

/* Stops @tid, copies its registers and its stack, and lets it go on. */
enum stop_result process_memory_stop(struct process_memory *memory, pid_t tid,
				     struct stopped *stopped);

#endif
