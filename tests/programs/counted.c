/*
 * counted once|threads|forks: "//# N" after a line states how often each run of work()
 * reaches it: there is one run, or four threads run it, or three processes.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int sink;

/* Its returns meet in code without a line, after abort. */
static void return_early(int i)
{
	if (i == 1) {
		sink = 1;	//# 0
		return;
	}
	for (int n = 0; n <= i; n++)
		if (n == i) {
			sink = n;	//# 1
			return;
		}
	abort();	//# 0
}

static void work(void)
{
	for (int i = 0; i < 1000; i++) {
		if (i % 10 == 0)	//# 1000
			sink = i;	//# 100
		else if (i % 10 == 1)	//# 900
			sink = -i;	//# 100
		if (i == 5000)
			sink = 0;	//# 0
	}
	return_early(3);	//# 1
}

static void *run(void *unused)
{
	work();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[4];

	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "threads") == 0) {
		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, run, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		return 0;
	}
	work();
	for (int i = 0; i < 2 && strcmp(argv[1], "forks") == 0; i++) {
		if (fork() == 0) {
			work();
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
