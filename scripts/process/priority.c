/* Real time of the lowest priority comes before all that have none; else the nice value. */
#include <sys/resource.h>

#include "process/priority.h"

#define NICE_FIRST (-20)

static void store(struct priority *now)
{
	now->policy = sched_getscheduler(0);
	now->nice = getpriority(PRIO_PROCESS, 0);
	sched_getparam(0, &now->parameters);
}

void priority_raise(struct priority *before)
{
	const struct sched_param least = {
		.sched_priority = sched_get_priority_min(SCHED_FIFO)
	};

	store(before);
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &least) < 0)
		setpriority(PRIO_PROCESS, 0, NICE_FIRST);
}

void priority_prefer(struct priority *before)
{
	store(before);
	setpriority(PRIO_PROCESS, 0, NICE_FIRST);
}

void priority_restore(const struct priority *before)
{
	sched_setscheduler(0, before->policy, &before->parameters);
	setpriority(PRIO_PROCESS, 0, before->nice);
}
