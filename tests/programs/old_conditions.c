/*
 * A program that uses the older version of condition variables: three threads take
 * turns.  It prints how often it waited for one.
 */
#include "truth.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#ifdef __x86_64__
#define OLD(name) __asm__(".symver " #name ", " #name "@GLIBC_2.2.5");
OLD(pthread_cond_init)
OLD(pthread_cond_destroy)
OLD(pthread_cond_wait)
OLD(pthread_cond_timedwait)
OLD(pthread_cond_signal)
OLD(pthread_cond_broadcast)
#endif

#define TURNS 300

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static int turn;
static long waits;

static void *play(void *number)
{
	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&mutex);
		while (turn % 3 != (int)(long)number) {
			waits++;
			pthread_cond_wait(&turn_changed, &mutex);
		}
		turn++;
		pthread_cond_broadcast(&turn_changed);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[3];
	pthread_cond_t other;
	struct timespec soon;

	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, play, (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	if (turn != 3 * TURNS)
		return 1;
	pthread_cond_init(&other, NULL);
	pthread_cond_signal(&other);
	clock_gettime(CLOCK_REALTIME, &soon);
	pthread_mutex_lock(&mutex);
	if (pthread_cond_timedwait(&other, &mutex, &soon) != ETIMEDOUT)
		return 2;
	pthread_mutex_unlock(&mutex);
	pthread_cond_destroy(&other);
	printf("%ld\n", waits + 1);
	return 0;
}
