/* The rank of this process in a parallel job. */
#ifndef RUN_JOB_H
#define RUN_JOB_H

#include <stdbool.h>

/* Ranks have the same id if they have the same parent, the same host, or in any case. */
enum job_id_kind { JOB_ID_OF_PARENT, JOB_ID_OF_HOST, JOB_ID_OF_ALL };

struct job {
	unsigned int size; /* number of ranks; 1: no parallel job */
	unsigned int rank;
	char id[80]; /* the same in all ranks, different in other jobs */
	enum job_id_kind id_kind;
	bool has_node_files; /* each host puts its ranks into one file */
};

/* job_find - read the environment that mpirun, srun and similar programs set */
void job_find(struct job *job);

/*
 * Notes in @directory, which the ranks share, that it is of this job.  Returns 0, also if that
 * cannot be noted; -EEXIST if it is of another job.  Each rank finds the same, so none of
 * them runs alone and waits for the others.
 */
int job_claim(const struct job *job, const char *directory);

/* Whether the ranks on this host, or the one on this processor, leave no processor free. */
bool job_fills_processors(const struct job *job);

/* Whether each host adds up its own ranks, for reports of large jobs and for files of
 * hosts. */
bool job_is_large(const struct job *job);
/* Notes in @directory that this rank has ended.  Returns true in the last rank of the
 * host, if the starter says how many there are. */
bool job_rank_ended(const char *directory);
/* Notes that this host has nothing more to write. */
void job_host_ended(const char *directory);

/*
 * job_wait - wait for the ends of all ranks' recordings in @directory
 *
 * In a large job it also waits for the hosts to add up their ranks.  Gives up after
 * @seconds: the other ranks may be on another host, with other disks.
 *
 * Returns the number of ranks that have ended.
 */
unsigned int job_wait(const struct job *job, const char *directory,
		      unsigned int seconds);

#endif
