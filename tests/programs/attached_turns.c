/*
 * attached_turns: a program to attach to whose threads come and go.
 *
 * Each line of standard input is a turn: two threads that were begun in the turn before end,
 * and two others begin.  In every other turn, many blocks are allocated; in the turns
 * between, these are released.  At the end of its input, the program ends.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLAIN	__attribute__((no_instrument_function))
#define THREADS 2
#define BLOCKS	2000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begun, ends;
static pid_t tids[THREADS];
static void *blocks[BLOCKS];

__attribute__((noinline)) static void leaf(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static PLAIN void *work(void *tid)
{
	*(pid_t *)tid = (pid_t)syscall(SYS_gettid);
	leaf();
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&ends);
	leaf();
	return NULL;
}

/* A joined thread may live for a moment. */
static PLAIN void wait_until_gone(pid_t tid)
{
	while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
		usleep(100);
}

static PLAIN void take_turn(void)
{
	static pthread_t threads[THREADS];
	static int turns;

	if (turns > 0)
		pthread_barrier_wait(&ends);
	for (int i = 0; turns > 0 && i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		wait_until_gone(tids[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, &tids[i]);
	pthread_barrier_wait(&begun);
	for (int i = 0; i < BLOCKS; i++) {
		if (turns % 2)
			blocks[i] = malloc(100);
		else
			free(blocks[i]);
	}
	turns++;
	leaf();
}

PLAIN int main(void)
{
	int c;

	pthread_barrier_init(&begun, NULL, THREADS + 1);
	pthread_barrier_init(&ends, NULL, THREADS + 1);
	take_turn();
	puts("ready");
	fflush(stdout);
	while ((c = getchar()) != EOF)
		if (c == '\n') {
			take_turn();
			puts("turn");
			fflush(stdout);
		}
	return 0;
}
