/*
 * A target for attaching: attach [THREADS [busy|idle|fork|blocks|handles| shares]],
 * runs until its standard input ends.  Every thread calls into a small tree of
 * functions, or sleeps in one.  The program prints how often each thread went around,
 * and what it finds about itself in /proc.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))

static volatile int stopped;
static int idle;

/* For a profiler that jumps out of a callback; exported with -rdynamic. */
jmp_buf program_back;
volatile int program_waits;

int leaf(int n)
{
	return n + 1;
}

int inner(int n)
{
	return leaf(leaf(n));
}

int recursive(int n, int depth)
{
	return depth > 0 ? recursive(n, depth - 1) + 1 : inner(n);
}

int round_trip(int n)
{
	return recursive(inner(n), n % 5) + leaf(n);
}

static volatile int handled;

static void handle(int signal)
{
	(void)signal;
	handled = inner(handled % 1000);
}

/* The first thread's mode: it blocks all signals, or handles one with all blocked. */
static const char *how = "";
static volatile int is_set_up;

PLAIN static void set_up_first(void)
{
	struct sigaction action = { .sa_handler = handle };

	sigfillset(&action.sa_mask);
	if (!strcmp(how, "blocks"))
		pthread_sigmask(SIG_SETMASK, &action.sa_mask, NULL);
	if (!strcmp(how, "handles"))
		sigaction(SIGUSR1, &action, NULL);
	is_set_up = 1;
}

/* Allocates memory that is freed by the other threads in turn. */
static void share(int n)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static char *kept;
	char *block;

	pthread_mutex_lock(&mutex);
	block = malloc(64 + (size_t)n % 100);
	kept = realloc(kept, 100 + (size_t)n);
	sched_yield();
	pthread_mutex_unlock(&mutex);
	free(block);
}

static void *work(void *count)
{
	unsigned long *rounds = count;
	static int first = 1;
	int is_first = __atomic_exchange_n(&first, 0, __ATOMIC_RELAXED);

	if (is_first)
		set_up_first();
	while (!stopped) {
		if (is_first && !strcmp(how, "handles"))
			raise(SIGUSR1);
		if (!strcmp(how, "shares"))
			share((int)(*rounds % 1000));
		if (idle)
			usleep(1000000);
		else
			round_trip((int)(*rounds % 1000));
		++*rounds;
	}
	return NULL;
}

PLAIN static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 3; /* ., .., and its own descriptor in the case of fd */
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 8;
	pthread_t thread[64];
	static unsigned long rounds[64];
	int fds;
	char c;

	/* Before there are threads: each thread opens one of shim's files for a
	 * moment. */
	fds = count_entries("/proc/self/fd");
	printf("fds %d\n", fds);
	how = argc > 2 ? argv[2] : "";
	idle = !strcmp(how, "idle");
	if (setjmp(program_back) == 0) {
		program_waits = 1;
		leaf(1);
	}
	program_waits = 0;
	if (!strcmp(how, "fork")) {
		int ends[2];
		pid_t child;

		fflush(stdout);
		if (pipe(ends) < 0)
			return 1;
		child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (write(ends[1], "x", 1) == 1)
				pause();
			_exit(1);
		}
		/* The child waits until it is recorded, and ends with its parent. */
		if (read(ends[0], &c, 1) == 1)
			printf("child %d\n", child);
		close(ends[0]);
		close(ends[1]);
	}
	for (int i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, work, &rounds[i]);
	while (threads > 0 && !is_set_up)
		usleep(1000);
	printf("ready\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	stopped = 1;
	for (int i = 0; i < threads && !idle; i++)
		pthread_join(thread[i], NULL);
	/* During an attach or detach, a descriptor may be open for a moment. */
	for (int i = 0; i < 100 && count_entries("/proc/self/fd") != fds; i++)
		usleep(10000);
	printf("fds %d\ndone\n", count_entries("/proc/self/fd"));
	return 42;
}
