/*
 * interrupted_by_api PLUGIN SECONDS: allocates, loads and unloads, forks, creates
 * threads and prints, while a timer's handler calls a module of contexts.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define QUIETLY __attribute__((no_instrument_function))

__attribute__((visibility("default"))) void (*contexts_step)(const char *place);

static volatile sig_atomic_t ticks;

/* Each interruption begins after the one before: where they are slow, the program still
 * goes on. */
QUIETLY static void set_timer(void)
{
	struct itimerval timer = { { 0, 0 }, { 0, 300 } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

QUIETLY static void on_timer(int number)
{
	int before = errno;

	(void)number;
	ticks++;
	contexts_step("signal handler");
	set_timer();
	errno = before;
}

static void *run(void *argument)
{
	free(malloc(100));
	return argument;
}

static void allocate(void)
{
	void *blocks[32];

	for (int i = 0; i < 32; i++)
		blocks[i] = malloc((size_t)i * 1000 + 1);
	for (int i = 0; i < 32; i++)
		free(blocks[i]);
}

static void load(const char *plugin)
{
	void *handle = dlopen(plugin, RTLD_NOW);

	if (handle)
		dlclose(handle);
}

static void make_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL) == 0)
		pthread_join(thread, NULL);
}

static void make_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

QUIETLY int main(int count, char **arguments)
{
	struct sigaction action = { .sa_handler = on_timer,
				    .sa_flags = SA_RESTART };
	time_t end = time(NULL) + (count > 2 ? atoi(arguments[2]) : 1);
	FILE *nowhere = fopen("/dev/null", "w");

	if (!contexts_step)
		return 1;
	sigaction(SIGALRM, &action, NULL);
	set_timer();
	for (int i = 0; time(NULL) < end; i++) {
		allocate();
		if (i % 4 == 0)
			load(arguments[1]);
		if (i % 4 == 1)
			make_thread();
		if (i % 16 == 2)
			make_process();
		fprintf(nowhere, "%d %s\n", i, strerror(i % 100));
	}
	signal(SIGALRM, SIG_IGN);
	printf("%d interruptions\n", (int)ticks);
	return 0;
}
