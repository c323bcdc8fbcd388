/*
 * Measures uncontended locks: ns for each kind, with one thread and with two.
 * Prints "THREADS KIND NS" for tests/bench/locks.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 300
#define CALLS  2000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t semaphore;
static mtx_t c11;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* The minimum of many short rounds excludes other load on the machine. */
#define MEASURE(kind, take, give) \
	do { \
		double least = 1e9; \
\
		for (int round = 0; round < ROUNDS; round++) { \
			double ns = now(); \
\
			for (int i = 0; i < CALLS; i++) { \
				take; \
				give; \
			} \
			ns = (now() - ns) / CALLS; \
			if (ns < least) \
				least = ns; \
		} \
		printf("%d %s %.2f\n", threads, kind, least); \
	} while (0)

static void measure(int threads)
{
	MEASURE("mutex", pthread_mutex_lock(&mutex),
		pthread_mutex_unlock(&mutex));
	MEASURE("mtx_t", mtx_lock(&c11), mtx_unlock(&c11));
	MEASURE("read", pthread_rwlock_rdlock(&rwlock),
		pthread_rwlock_unlock(&rwlock));
	MEASURE("write", pthread_rwlock_wrlock(&rwlock),
		pthread_rwlock_unlock(&rwlock));
	MEASURE("semaphore", sem_wait(&semaphore), sem_post(&semaphore));
	MEASURE("spin", pthread_spin_lock(&spin), pthread_spin_unlock(&spin));
	MEASURE("trylock", pthread_mutex_trylock(&mutex),
		pthread_mutex_unlock(&mutex));
}

static void *sleeper(void *unused)
{
	pause();
	return unused;
}

int main(void)
{
	pthread_t other;

	pthread_spin_init(&spin, 0);
	sem_init(&semaphore, 0, 1);
	mtx_init(&c11, mtx_plain);
	measure(1);
	pthread_create(&other, NULL, sleeper, NULL);
	measure(2);
	return 0;
}
