/*
 * Parallel jobs, as their starters describe them to each process: OpenMPI,
 * MPICH and its kin (PMI), Slurm's srun.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

#define RANKS_MAX	 10000000
#define LOOKS_PER_SECOND 20
/* Reports of fewer ranks need no reduction (report/model/reduce.c). */
#define LARGE 32
#define NOTE  "job." /* and the host, or "all": a file with the job's id */

struct starter {
	const char *size, *rank;
	const char *id[2]; /* both together identify the job; NULL: none */
};

static const struct starter starters[] = {
	{ "OMPI_COMM_WORLD_SIZE",
	  "OMPI_COMM_WORLD_RANK",
	  { "PMIX_NAMESPACE", NULL } },
	{ "PMI_SIZE", "PMI_RANK", { "PMI_JOBID", NULL } },
	/* Only a job step has this variable, not a batch script itself. */
	{ "SLURM_STEP_NUM_TASKS",
	  "SLURM_PROCID",
	  { "SLURM_JOB_ID", "SLURM_STEP_ID" } },
};

static int read_number(const char *name, unsigned int *number)
{
	const char *text = getenv(name);
	unsigned long value;
	char *end;

	if (text == NULL || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno != 0 || *end != '\0' || value > RANKS_MAX)
		return 0;
	*number = (unsigned int)value;
	return 1;
}

/* MPICH's mpirun gives no id.  A rank has a socket of the process that serves all ranks of
 * its host.  Returns the pid of that process, or 0. */
static pid_t find_server(void)
{
	struct ucred server = { 0 };
	socklen_t size = sizeof(server);
	unsigned int fd;

	if (!read_number("PMI_FD", &fd) ||
	    getsockopt((int)fd, SOL_SOCKET, SO_PEERCRED, &server, &size) < 0)
		return 0;
	return server.pid;
}

/* Without an id, the pid of the starter, which is the parent of all ranks of a host unless
 * a program is between them. */
static void find_id(struct job *job, const struct starter *starter)
{
	const char *first = starter->id[0] ? getenv(starter->id[0]) : NULL;
	const char *second = starter->id[1] ? getenv(starter->id[1]) : NULL;
	pid_t server = find_server();

	if (first != NULL && *first != '\0') {
		job->id_kind = JOB_ID_OF_ALL;
		snprintf(job->id, sizeof(job->id), "%s%s%s", first,
			 second ? "." : "", second ? second : "");
	} else {
		job->id_kind = server > 0 ? JOB_ID_OF_HOST : JOB_ID_OF_PARENT;
		snprintf(job->id, sizeof(job->id), "%ld",
			 (long)(server > 0 ? server : getppid()));
	}
	for (char *at = job->id; *at != '\0'; at++)
		if (*at == '/' || *at == '%' || (unsigned char)*at <= ' ')
			*at = '_';
}

void job_find(struct job *job)
{
	size_t count = sizeof(starters) / sizeof(starters[0]);

	for (size_t i = 0; i < count; i++) {
		if (!read_number(starters[i].size, &job->size) ||
		    !read_number(starters[i].rank, &job->rank) ||
		    job->rank >= job->size)
			continue;
		find_id(job, &starters[i]);
		return;
	}
	*job = (struct job){ .size = 1 };
}

/* --- whose directory it is --- */

/* 0: the note has this id; -ENOENT: there is no note, or it cannot be
 * read. */
static int compare_note(const char *path, const char *id)
{
	char text[sizeof(((struct job *)NULL)->id)] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return -ENOENT;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -ENOENT;
	return strcmp(text, id) == 0 ? 0 : -EEXIST;
}

/* The note appears with its text, by a link: another rank may read it at once. */
static void write_note(const char *path, const char *id)
{
	char own[PATH_MAX];
	ssize_t size = (ssize_t)strlen(id);
	int fd;

	if (snprintf(own, sizeof(own), "%s.%ld", path, (long)getpid()) >=
	    (int)sizeof(own))
		return;
	fd = open(own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		  0600);
	if (fd < 0)
		return;
	/* The link fails if another rank was faster. */
	if (write(fd, id, (size_t)size) != size || link(own, path) < 0)
		size = 0;
	close(fd);
	unlink(own);
}

int job_claim(const struct job *job, const char *directory)
{
	char path[PATH_MAX], host[HOST_NAME_MAX + 1] = "all";
	int r;

	if (job->id_kind == JOB_ID_OF_HOST)
		gethostname(host, sizeof(host) - 1);
	if (job->id_kind == JOB_ID_OF_PARENT ||
	    snprintf(path, sizeof(path), "%s/" NOTE "%s", directory, host) >=
		    (int)sizeof(path))
		return 0;
	r = compare_note(path, job->id);
	if (r == -ENOENT) {
		write_note(path, job->id);
		r = compare_note(path, job->id);
	}
	return r == -EEXIST ? r : 0;
}

/* --- large jobs --- */

#define ENDED	   "ended."
#define RANK_ENDED '.'
#define HOST_ENDED 'R'

bool job_is_large(const struct job *job)
{
	return job->size >= LARGE || job->has_node_files;
}

/* The processes on this node, from a list such as "4(x2),3". */
static unsigned int slurm_local(void)
{
	const char *list = getenv("SLURM_STEP_TASKS_PER_NODE");
	unsigned int node, tasks, times;
	char *end;

	if (list == NULL || !read_number("SLURM_NODEID", &node))
		return 0;
	for (;; list = end + 1) {
		tasks = (unsigned int)strtoul(list, &end, 10);
		times = 1;
		if (strncmp(end, "(x", 2) == 0)
			times = (unsigned int)strtoul(end + 2, &end, 10);
		if (*end == ')')
			end++;
		if (node < times)
			return tasks;
		node -= times;
		if (*end != ',')
			return 0;
	}
}

/* The ranks of this job on this host; 0: unknown. */
static unsigned int count_local(void)
{
	unsigned int number;

	if (read_number("OMPI_COMM_WORLD_LOCAL_SIZE", &number) ||
	    read_number("MPI_LOCALNRANKS", &number))
		return number;
	return slurm_local();
}

/* Starters that bind a rank to a processor bind the processes of profrun, too. */
bool job_fills_processors(const struct job *job)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t own;

	if (job->size < 2)
		return false;
	return (processors > 0 && count_local() >= processors) ||
	       (sched_getaffinity(0, sizeof(own), &own) == 0 &&
		CPU_COUNT(&own) == 1);
}

/* The file "ended.HOST" has one byte for each rank of this host that has ended.  Only
 * this host writes it, and appending is atomic on one host. */
static int open_ended(const char *directory)
{
	char path[PATH_MAX], host[HOST_NAME_MAX + 1] = "";

	gethostname(host, sizeof(host) - 1);
	snprintf(path, sizeof(path), "%s/" ENDED "%s", directory, host);
	return open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		    0600);
}

static void append(int fd, char byte)
{
	/* Without the byte, rank 0 waits a little longer. */
	if (write(fd, &byte, 1) != 1)
		return;
}

bool job_rank_ended(const char *directory)
{
	unsigned int local = count_local();
	int fd = open_ended(directory);
	off_t end;

	if (fd < 0)
		return false;
	append(fd, RANK_ENDED);
	/* After its own byte, whatever other ranks append meanwhile. */
	end = lseek(fd, 0, SEEK_CUR);
	close(fd);
	return local > 0 && end == (off_t)local;
}

void job_host_ended(const char *directory)
{
	int fd = open_ended(directory);

	if (fd < 0)
		return;
	append(fd, HOST_ENDED);
	close(fd);
}

/* Counts the ranks that one host has noted.  *@is_open: it has more to do. */
static unsigned int count_noted(int directory, const char *name, bool *is_open)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	unsigned int count = 0;
	bool has_ended = false;
	char bytes[4096];
	ssize_t n;

	while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			count += bytes[i] == RANK_ENDED;
			has_ended |= bytes[i] == HOST_ENDED;
		}
	if (fd >= 0)
		close(fd);
	*is_open |= !has_ended;
	return count;
}

/* --- waiting --- */

/* A large job has few files to look at; a small one, its ranks. */
static unsigned int count_ended(const struct job *job, const char *directory,
				bool *is_open)
{
	DIR *dir = opendir(directory);
	unsigned int count = 0;
	struct dirent *entry;

	*is_open = false;
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		char end[sizeof(entry->d_name) + sizeof("/end")];

		if (job_is_large(job)) {
			if (strncmp(entry->d_name, ENDED, strlen(ENDED)) == 0)
				count += count_noted(dirfd(dir), entry->d_name,
						     is_open);
			continue;
		}
		if (strncmp(entry->d_name, "rank.", 5) != 0)
			continue;
		snprintf(end, sizeof(end), "%s/end", entry->d_name);
		count += faccessat(dirfd(dir), end, F_OK, 0) == 0;
	}
	if (dir != NULL)
		closedir(dir);
	return count;
}

unsigned int job_wait(const struct job *job, const char *directory,
		      unsigned int seconds)
{
	struct timespec pause = { .tv_nsec = 1000000000 / LOOKS_PER_SECOND };
	unsigned int ended;
	bool is_open;

	for (unsigned int i = 0;; i++) {
		ended = count_ended(job, directory, &is_open);
		if ((ended >= job->size && !is_open) ||
		    i >= seconds * LOOKS_PER_SECOND)
			return ended;
		nanosleep(&pause, NULL);
	}
}
