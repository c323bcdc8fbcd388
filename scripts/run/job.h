/* Whether this process is one of a parallel job's, and which. */
#ifndef RUN_JOB_H
#define RUN_JOB_H

struct job {
	unsigned int size;	/* ranks; 1: it is alone */
	unsigned int rank;
	char id[80];		/* the same in all ranks, different in other jobs */
};

/* job_find - what mpirun, srun and others of that kind left in the environment */
void job_find(struct job *job);

/*
 * job_wait - wait for the ends of all ranks' recordings in @directory
 *
 * Gives up after @seconds: they may be on another host, with other disks.
 *
 * Returns how many have ended.
 */
unsigned int job_wait(const struct job *job, const char *directory,
		      unsigned int seconds);

#endif
