/*
 * Prints a thread's stack as the thread sees it.  (Run by events.py.)
 */
#include "truth.h"

#include <execinfo.h>
#include <pthread.h>

static void *worker(void *argument)
{
	void *frames[100];

	printf("%d frames\n", backtrace(frames, 100));
	return argument;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, worker, NULL);
	pthread_join(thread, NULL);
	return 0;
}
