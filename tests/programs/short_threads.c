/*
 * short_threads COUNT - threads that end at once, eight at a time, in every way in
 * which a thread can end.  (Run by events.py.)
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

static pthread_key_t key;
static int again[4];

/* Sets its value again as often as libc allows. */
static void on_key_gone(void *value)
{
	long round = (int *)value - again;

	if (round < 3)
		pthread_setspecific(key, &again[round + 1]);
}

static void *returns(void *argument)
{
	pthread_setspecific(key, &again[0]);
	return argument;
}

static void *exits(void *argument)
{
	pthread_exit(argument);
}

static void *is_cancelled(void *argument)
{
	pthread_cancel(pthread_self());
	pthread_testcancel();
	return argument;
}

static int c11(void *argument)
{
	thrd_exit((int)(long)argument);
}

int main(int count, char **arguments)
{
	long total = count > 1 ? atol(arguments[1]) : 8;
	long sum = 0;
	pthread_attr_t attributes;

	pthread_key_create(&key, on_key_gone);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, sysconf(_SC_THREAD_STACK_MIN));
	for (long i = 0; i < total; i += 8) {
		pthread_t threads[6];
		thrd_t others[2];
		void *result;
		int status;

		for (int k = 0; k < 6; k++)
			if (pthread_create(&threads[k],
					   k & 1 ? &attributes : NULL,
					   k < 2 ? returns :
					   k < 4 ? exits :
						   is_cancelled,
					   (void *)(i + k)) != 0)
				print_text("no thread\n");
		for (int k = 0; k < 2; k++)
			thrd_create(&others[k], c11, (void *)(long)k);
		for (int k = 0; k < 6; k++) {
			pthread_join(threads[k], &result);
			sum += k < 4 ? (long)result :
				       result == PTHREAD_CANCELED;
		}
		for (int k = 0; k < 2; k++) {
			thrd_join(others[k], &status);
			sum += status;
		}
	}
	printf("%ld\n", sum);
	return 0;
}
