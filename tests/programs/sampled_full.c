/*
 * sampled_full - threads that end soon, each sampled; files may not grow any more once
 * the first one has run.  The next thread reuses the file of the one before.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define THREADS 300
#define TIME_NS 2000000

static double own_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static __attribute__((noinline)) int descend(int depth)
{
	volatile int result = 0;

	if (depth > 0)
		return descend(depth - 1) + 1;
	while (own_ns() < TIME_NS)
		result++;
	return 0;
}

static void *work(void *depth)
{
	return (void *)(long)descend((int)(long)depth);
}

int main(void)
{
	struct rlimit none = { 0, 0 };
	long sum = 0;

	for (long i = 0; i < THREADS; i++) {
		pthread_t thread;
		void *result;

		pthread_create(&thread, NULL, work, (void *)(i % 40));
		pthread_join(thread, &result);
		sum += (long)result;
		if (i == 0)
			setrlimit(RLIMIT_FSIZE, &none);
	}
	printf("%ld\n", sum);
	return 0;
}
