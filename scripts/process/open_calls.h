/* The calls that are open in each thread, as shim records them in the process. */
#ifndef PROCESS_OPEN_CALLS_H
#define PROCESS_OPEN_CALLS_H

#include <stdint.h>
#include <sys/types.h>

#include "process/target.h"

/* A call path of @tid that is open, the outermost function first. */
struct open_path {
	pid_t tid;
	uint64_t *functions; /* where they begin in memory */
	uint32_t count;
};

struct open_calls {
	const char *recording; /* NULL: shim records nothing of it */
	struct open_path *paths;
	uint32_t count, room;
};

/* What is open now.  open_calls_free() is its counterpart. */
void open_calls_read(struct open_calls *calls, const struct target *target);
void open_calls_free(struct open_calls *calls);

#endif
