/*
 * Threads may end deep in their calls, in every possible way.
 *
 * A limit: C without -fexceptions runs the handlers of pthread_cleanup_push after a
 * jump inside libc, so they may seem to be called by the cancelled function.
 *
 * tree:
 *	main 1
 *	main;leaf 1
 *	exiting 20
 *	exiting;down 20
 *	exiting;down;down 20
 *	exiting;down;down;down 20
 *	exiting;down;down;down;leaf 20
 *	deferred 20
 *	deferred;wait_here 20
 *	deferred;wait_here;leaf 20
 *	asynchronous 20
 *	asynchronous;spin 20
 *	asynchronous;spin;leaf 20
 *	with_key 20
 *	with_key;leaf 20
 *	on_key_gone 40
 *	on_key_gone;leaf 40
 *	killed 20
 *	killed;leaf 20
 *	*
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>

static sem_t ready;
static pthread_key_t key;

static APART void leaf(void)
{
	COUNTED;
}

static APART void down(int n)
{
	COUNTED;
	if (n > 0)
		down(n - 1);
	leaf();
	pthread_exit(NULL);
}

static void *exiting(void *argument)
{
	COUNTED;
	down(2);
	return argument;
}

static APART void on_cleanup(void *argument)
{
	(void)argument;
	COUNTED;
	leaf();
}

static APART void wait_here(void)
{
	COUNTED;
	leaf();
	sem_post(&ready);
	for (;;)
		pause();
}

static void *deferred(void *argument)
{
	COUNTED;
	pthread_cleanup_push(on_cleanup, NULL);
	wait_here();
	pthread_cleanup_pop(0);
	return argument;
}

static APART void spin(void)
{
	COUNTED;
	leaf();
	sem_post(&ready);
	for (volatile long i = 0;; i++)
		;
}

static void *asynchronous(void *argument)
{
	int before;

	COUNTED;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
	spin();
	return argument;
}

/* Called twice, because it sets the value again the first time. */
static APART void on_key_gone(void *value)
{
	COUNTED;
	leaf();
	if (value == (void *)2)
		pthread_setspecific(key, (void *)1);
}

static void *with_key(void *argument)
{
	COUNTED;
	pthread_setspecific(key, (void *)2);
	leaf();
	return argument;
}

/* The kernel ends the thread; no code of libc runs. */
static void *killed(void *argument)
{
	COUNTED;
	leaf();
	sem_post(&ready);
	syscall(SYS_exit, 0);
	return argument;
}

int main(void)
{
	pthread_t thread;

	COUNTED;
	sem_init(&ready, 0, 0);
	pthread_key_create(&key, on_key_gone);
	for (int i = 0; i < 20; i++) {
		pthread_create(&thread, NULL, exiting, NULL);
		pthread_join(thread, NULL);
		pthread_create(&thread, NULL, deferred, NULL);
		sem_wait(&ready);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		pthread_create(&thread, NULL, asynchronous, NULL);
		sem_wait(&ready);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		pthread_create(&thread, NULL, with_key, NULL);
		pthread_join(thread, NULL);
		pthread_create(&thread, NULL, killed, NULL);
		sem_wait(&ready);
		pthread_join(thread, NULL);
	}
	leaf();
	print_counts();
	return 0;
}
