/*
 * The priority of this process while a program waits for it.  Among 500 threads that run,
 * it would get a processor every half second, and the threads that it has stopped would wait
 * as long.
 */
#ifndef PROCESS_PRIORITY_H
#define PROCESS_PRIORITY_H

#include <sched.h>

struct priority {
	struct sched_param parameters;
	int policy, nice;
};

/* Before all other processes, for moments.  Stores the priority before in *@before.
 * Without the right to it, nothing changes. */
void priority_raise(struct priority *before);
/* Gets most of a processor beside others, but not all of it.  For work that takes longer. */
void priority_prefer(struct priority *before);
void priority_restore(const struct priority *before);

#endif
