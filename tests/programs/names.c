/*
 * Threads that set their own names and those of other threads.  (Run by events.py.)
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>

static sem_t named, ready;

static void *worker(void *argument)
{
	prctl(PR_SET_NAME, "a name that is too long");
	sem_post(&ready);
	sem_wait(&named);
	return argument;
}

int main(void)
{
	pthread_t thread;
	char name[16];

	sem_init(&named, 0, 0);
	sem_init(&ready, 0, 0);
	pthread_setname_np(pthread_self(), "first");
	pthread_create(&thread, NULL, worker, NULL);
	sem_wait(&ready);
	if (pthread_setname_np(thread, "more than sixteen bytes") == 0)
		print_text("too long, and taken\n");
	pthread_setname_np(thread, "other");
	pthread_getname_np(thread, name, sizeof(name));
	print_text(name);
	sem_post(&named);
	pthread_join(thread, NULL);
	return 0;
}
