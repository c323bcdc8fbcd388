/*
 * attached_open: a program to attach to, with calls that stay open for long.
 *
 * main has called serve, serve has called itself to a depth of 3, and the innermost calls
 * request again and again.  A thread does the same below work.  After a line or the end of
 * standard input, which await reads, all of them return; main calls serve once more.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 3

static volatile int ends;
static int begun;

#if __has_attribute(xray_never_instrument)
#define PLAIN __attribute__((xray_never_instrument, no_instrument_function))
#else
#define PLAIN __attribute__((no_instrument_function))
#endif

/* A thread has its calls open. */
PLAIN static void arrive(void)
{
	if (__atomic_add_fetch(&begun, 1, __ATOMIC_ACQ_REL) == THREADS) {
		puts("ready");
		fflush(stdout);
	}
}

__attribute__((noinline)) static int request(int number)
{
	__asm__ volatile("");
	return number + 1;
}

/* Its own calls have another frame than those that it calls. */
__attribute__((noinline, optimize("no-optimize-sibling-calls"))) static int
serve(int depth)
{
	volatile char frame[64];
	int number = 0;

	frame[0] = (char)depth;
	if (depth > 1)
		return serve(depth - 1) + frame[0];
	arrive();
	do {
		number = request(number) & 0xff;
		usleep(100);
	} while (!ends);
	return number;
}

static void *work(void *unused)
{
	serve(2);
	return unused;
}

/* The compiler makes its call of the leave hook a jump. */
__attribute__((noinline)) static void await(void)
{
	char line[16];

	arrive();
	if (read(0, line, sizeof(line)) >= 0)
		ends = 1;
}

static void *watch(void *unused)
{
	await();
	return unused;
}

int main(void)
{
	pthread_t watcher, worker;

	pthread_create(&watcher, NULL, watch, NULL);
	pthread_create(&worker, NULL, work, NULL);
	serve(3);
	serve(3);
	pthread_join(watcher, NULL);
	pthread_join(worker, NULL);
	puts("wrong 0 interrupted 0");
	return 0;
}
