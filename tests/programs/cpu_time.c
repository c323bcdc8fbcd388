/*
 * computes() does fixed work; sleeps() waits 300 ms; twice() does the work twice in short
 * calls of step().  Each thread does all of it, one after the other.
 *
 *     cpu_time [THREADS] [fork|exec]
 *
 * With fork, a child does the same; with exec, the program that follows does.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline))
#define PLAIN	 __attribute__((no_instrument_function))
#define STEPS	 300000

static __thread volatile unsigned result;

static PLAIN void work(int steps)
{
	for (int i = 0; i < steps * 500; i++)
		result += (unsigned)i;
}

static FUNCTION void step(void)
{
	work(1);
}

static FUNCTION void computes(void)
{
	for (int i = 0; i < 100; i++)
		work(STEPS / 100);
}

static FUNCTION void twice(void)
{
	for (int i = 0; i < 2 * STEPS; i++)
		step();
}

static FUNCTION void sleeps(void)
{
	struct timespec pause = { .tv_nsec = 300000000 };

	nanosleep(&pause, NULL);
}

static FUNCTION void *all(void *data)
{
	computes();
	sleeps();
	twice();
	return data;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t threads[16];

	if (argc > 2 && !strcmp(argv[2], "exec"))
		execl(argv[0], argv[0], argv[1], NULL);
	if (argc > 2 && !strcmp(argv[2], "fork")) {
		all(NULL);
		if (fork() != 0)
			return wait(NULL) < 0;
	}
	for (int i = 1; i < count && i < 16; i++)
		pthread_create(&threads[i], NULL, all, NULL);
	all(NULL);
	for (int i = 1; i < count && i < 16; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
