/*
 * Something for each profiler: calls, time, allocations, a contended lock, an
 * exception.
 */
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <time.h>

#define PROCESSOR_NS 60000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile double sum;

static void *contend(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

/* The lock is held until it has libc's mark of a mutex for which a thread waits. */
static void hold_lock(void)
{
	struct timespec pause = { 0, 1000000 };
	pthread_t thread;

	pthread_mutex_lock(&lock);
	pthread_create(&thread, NULL, contend, NULL);
	while (__atomic_load_n(&lock.__data.__lock, __ATOMIC_RELAXED) != 2)
		nanosleep(&pause, NULL);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}

static void work(int n)
{
	for (int i = 0; i < n; i++)
		sum += 1.0 / (i + 1);
}

static void compute(void)
{
	struct timespec now;

	do {
		work(100000);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec == 0 && now.tv_nsec < PROCESSOR_NS);
}

static void allocate(void)
{
	for (int i = 0; i < 50; i++)
		free(malloc(100 + i));
}

static void fail(int n)
{
	if (n)
		throw n;
}

int main()
{
	hold_lock();
	compute();
	allocate();
	try {
		fail(1);
	} catch (int) {
		puts("caught");
	}
	return 3;
}
