/*
 * What tests/formats/make records: two threads that count, allocate, leak, wait for a
 * lock and take some time.  With an argument, main first waits in two calls for the end of
 * standard input.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <shim/mark.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *volatile kept;

__attribute__((noinline)) int leaf(int n)
{
	return n / 2;
}

__attribute__((noinline)) int middle(int n, const char *text)
{
	int i, sum = text[0];

	for (i = 0; i < n; i++)
		sum += leaf(i);
	return sum;
}

__attribute__((noinline)) void allocate(void)
{
	kept = malloc(1000);
	free(kept);
	kept = malloc(100);
	kept = malloc(30);
}

__attribute__((noinline)) void hold(int us)
{
	pthread_mutex_lock(&lock);
	usleep((useconds_t)us);
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) void spend(double seconds)
{
	struct timespec now, begin;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((double)(now.tv_sec - begin.tv_sec) +
		       (double)(now.tv_nsec - begin.tv_nsec) / 1e9 <
	       seconds);
}

__attribute__((noinline)) int await_end(void)
{
	char byte;
	ssize_t got;

	if (write(1, "ready\n", 6) != 6)
		return 1;
	do
		got = read(0, &byte, 1);
	while (got > 0);
	return middle(4, "later");
}

__attribute__((noinline)) int serve(void)
{
	return await_end() + 1;
}

static void *work(void *argument)
{
	middle(5, "thread");
	hold(1000);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argv;
	if (argc > 1)
		serve();
	shim_mark("begin");
	pthread_mutex_lock(&lock);
	pthread_create(&thread, NULL, work, NULL);
	middle(3, "main");
	middle(2, "again");
	allocate();
	usleep(20000);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	spend(0.05);
	return 0;
}
