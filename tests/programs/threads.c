/*
 * Every thread has counts of its own, at the same time and one after another.
 *
 * tree:
 *	main 1
 *	main;at_once 1
 *	main;one_by_one 1
 *	worker 64
 *	worker;a 640000
 *	worker;a;b 640000
 *	brief 200
 *	brief;b 200
 *	brief;a 200
 *	brief;a;b 200
 *	detached 50
 *	detached;b 50
 */
#include "truth.h"

#include <pthread.h>
#include <semaphore.h>

static sem_t done;

static APART void b(void)
{
	COUNTED;
}

static APART void a(void)
{
	COUNTED;
	b();
}

static void *worker(void *argument)
{
	COUNTED;
	for (int i = 0; i < 10000; i++)
		a();
	return argument;
}

static APART void at_once(void)
{
	pthread_t threads[64];

	COUNTED;
	for (int i = 0; i < 64; i++)
		pthread_create(&threads[i], NULL, worker, NULL);
	for (int i = 0; i < 64; i++)
		pthread_join(threads[i], NULL);
}

static void *brief(void *argument)
{
	COUNTED;
	b();
	a();
	return argument;
}

static void *detached(void *argument)
{
	COUNTED;
	b();
	sem_post(&done);
	return argument;
}

static APART void one_by_one(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	COUNTED;
	for (int i = 0; i < 200; i++) {
		pthread_create(&thread, NULL, brief, NULL);
		pthread_join(thread, NULL);
	}
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sem_init(&done, 0, 0);
	for (int i = 0; i < 50; i++) {
		pthread_create(&thread, &attributes, detached, NULL);
		sem_wait(&done);
	}
}

int main(void)
{
	COUNTED;
	at_once();
	one_by_one();
	print_counts();
	return 0;
}
