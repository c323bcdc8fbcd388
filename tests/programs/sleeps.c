/*
 * Sleeps and computes; with `fds` it prints the open files, with `fork` a child does
 * it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long work;

__attribute__((noinline)) void nap(void)
{
	struct timespec time = { 0, 30000000 };

	nanosleep(&time, NULL);
}

__attribute__((noinline)) void step(void)
{
	for (int i = 0; i < 2000; i++)
		work = work + 1;
}

__attribute__((noinline)) void compute(void)
{
	for (int i = 0; i < 20000; i++)
		step();
}

static void *run(void *unused)
{
	nap();
	compute();
	return unused;
}

/* Two threads on one processor take turns. */
static void take_turns(void)
{
	pthread_t one, two;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
	pthread_create(&one, NULL, run, NULL);
	pthread_create(&two, NULL, run, NULL);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
}

static void list_files(void)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	while ((entry = readdir(directory)))
		puts(entry->d_name);
	closedir(directory);
}

int main(int words, char **word)
{
	const char *what = words > 1 ? word[1] : "";

	if (!strcmp(what, "fds")) {
		list_files();
	} else if (!strcmp(what, "fork")) {
		if (fork() == 0) {
			nap();
			exit(0);
		}
		wait(NULL);
	} else {
		nap();
		take_turns();
		nap();
	}
	return 0;
}
