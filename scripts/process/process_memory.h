/* The memory of a running process. */
#ifndef PROCESS_PROCESS_MEMORY_H
#define PROCESS_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "process/space.h"
#include "process/target.h"

struct process_memory {
	struct space space; /* first */
	const struct target *target;
	uint64_t known;	  /* a hash of the mappings */
	bool is_repeated; /* threads are stopped again and again */
};

/* Reads the mappings of @target.  False, with errno, if the process has ended.  *@changed tells
 * whether the modules have changed. */
bool process_memory_read(struct process_memory *memory, bool *changed);

#endif
