/*
 * attached_locked KIND: a program to attach to whose threads hold a lock of libc.
 *
 *     fork     threads fork: one of them waits in libc's fork, because another one flushes
 *              all files and waits for a file that is locked
 *     handler  so does that thread, but it runs in a signal handler, and threads that compute
 *              are more than profrun lets run beside its calls; ends by itself
 *     loader   a thread is in a callback of dl_iterate_phdr
 *
 * The first line of standard input ends that; the second one ends the program.
 */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLAIN	      __attribute__((no_instrument_function))
#define FORKS	      3
#define FOR_PROCESSOR 17 /* threads that compute */
#define HOLD_S	      2

static FILE *locked;
static volatile int in_handler;
static struct timespec hold_until;
static volatile int ends;
static int wrong;

__attribute__((noinline)) static void leaf(void)
{
	__asm__ volatile("");
}

static PLAIN void *compute(void *unused)
{
	while (!ends) {
		leaf();
		usleep(100);
	}
	return unused;
}

static PLAIN void *flush(void *unused)
{
	fflush(NULL);
	return unused;
}

static PLAIN void *split(void *unused)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		leaf();
		_exit(7);
	}
	if (child < 0 || waitpid(child, &status, 0) != child ||
	    !WIFEXITED(status) || WEXITSTATUS(status) != 7)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	return unused;
}

/* Keeps the file locked for a time. */
static PLAIN void *hold(void *unused)
{
	flockfile(locked);
	clock_gettime(CLOCK_MONOTONIC, &hold_until);
	hold_until.tv_sec += HOLD_S;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &hold_until, NULL);
	funlockfile(locked);
	return unused;
}

static PLAIN void run_as_long(int number)
{
	struct timespec now;

	(void)number;
	in_handler = 1;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec < hold_until.tv_sec ||
	       (now.tv_sec == hold_until.tv_sec &&
		now.tv_nsec < hold_until.tv_nsec));
}

static PLAIN void *run(void *unused)
{
	while (!ends)
		leaf();
	return unused;
}

static PLAIN void read_line(void)
{
	char line[16];

	if (read(0, line, sizeof(line)) <= 0)
		abort();
}

static PLAIN int wait_there(struct dl_phdr_info *info, size_t size,
			    void *unused)
{
	(void)info, (void)size, (void)unused;
	/* profrun does not use a thread that libc has called. */
	read_line();
	return 1;
}

static PLAIN void *iterate(void *unused)
{
	dl_iterate_phdr(wait_there, NULL);
	return unused;
}

/* The thread does its work and sleeps then. */
static PLAIN void begin(pthread_t *thread, void *(*work)(void *unused))
{
	pthread_create(thread, NULL, work, NULL);
	usleep(100000);
}

/* A thread that forks runs in a handler, beside many others. */
static PLAIN int handler_main(void)
{
	long count = FOR_PROCESSOR * sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t holder, flusher, forker;
	pthread_t *threads = calloc((size_t)count, sizeof(*threads));

	if (!threads)
		return 2;
	signal(SIGUSR1, run_as_long);
	begin(&holder, hold);
	begin(&flusher, flush);
	begin(&forker, split);
	for (long i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	pthread_kill(forker, SIGUSR1);
	while (!in_handler)
		usleep(1000);
	if (write(1, "ready\n", 6) != 6)
		return 2;
	read_line();
	ends = 1;
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	pthread_join(holder, NULL);
	pthread_join(flusher, NULL);
	pthread_join(forker, NULL);
	printf("wrong %d interrupted 0\n", wrong);
	return 0;
}

PLAIN int main(int argc, char **argv)
{
	int is_fork = argc > 1 && !strcmp(argv[1], "fork"), count = 0;
	pthread_t threads[2 + FORKS];

	locked = tmpfile();
	if (!locked)
		return 2;
	if (argc > 1 && !strcmp(argv[1], "handler"))
		return handler_main();
	begin(&threads[count++], compute);
	if (is_fork) {
		flockfile(locked);
		begin(&threads[count++], flush);
		for (int i = 0; i < FORKS; i++)
			begin(&threads[count++], split);
	} else {
		begin(&threads[count++], iterate);
	}
	if (write(1, "ready\n", 6) != 6)
		return 2;
	if (is_fork) {
		read_line();
		funlockfile(locked);
	}
	for (int i = 1; i < count; i++)
		pthread_join(threads[i], NULL);
	if (write(1, "free\n", 5) != 5)
		return 2;
	read_line();
	ends = 1;
	pthread_join(threads[0], NULL);
	printf("wrong %d interrupted 0\n", wrong);
	return 0;
}
