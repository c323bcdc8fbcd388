/* The rank of this process in a parallel job. */
#ifndef RUN_JOB_H
#define RUN_JOB_H

struct job {
	unsigned int size; /* number of ranks; 1: no parallel job */
	unsigned int rank;
	char id[80]; /* the same in all ranks, different in other jobs */
};

/* job_find - read the environment that mpirun, srun and similar programs set */
void job_find(struct job *job);

/*
 * job_wait - wait for the ends of all ranks' recordings in @directory
 *
 * Gives up after @seconds: the other ranks may be on another host, with other disks.
 *
 * Returns the number of ranks that have ended.
 */
unsigned int job_wait(const struct job *job, const char *directory,
		      unsigned int seconds);

#endif
