/* Reads the open calls of each thread from the recording that shim makes of the process. */
#ifndef PROCESS_OPEN_CALLS_H
#define PROCESS_OPEN_CALLS_H

#include <stdint.h>
#include <sys/types.h>

#include "process/target.h"

/* The path of a thread's open calls, outermost function first. */
struct open_path {
	pid_t tid;	     /* in the thread's own pid namespace */
	uint64_t *functions; /* their addresses in memory */
	uint32_t count;
};

struct open_calls {
	const char *recording; /* NULL: shim does not record the process */
	struct open_path *paths;
	uint32_t count, room;
};

/* Reads the calls that are open now.  open_calls_free() frees them. */
void open_calls_read(struct open_calls *calls, const struct target *target);
/* The first path of the thread @tid, an id here, or the one that follows @after; NULL: none. */
const struct open_path *open_calls_of(const struct open_calls *calls, pid_t tid,
				      const struct open_path *after);
void open_calls_free(struct open_calls *calls);

#endif
