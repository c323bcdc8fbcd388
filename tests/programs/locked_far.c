/*
 * Waits for a mutex beyond the part of the program's file that is mapped.  (Run by
 * locks.py.)
 */
#include "truth.h"

#include <pthread.h>

static struct {
	char room[1 << 20];
	pthread_mutex_t lock;
} far = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *wait_for_it(void *unused)
{
	COUNTED;
	pthread_mutex_lock(&far.lock);
	pthread_mutex_unlock(&far.lock);
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_mutex_lock(&far.lock);
	pthread_create(&thread, NULL, wait_for_it, NULL);
	/* libc's mark of a mutex for which a thread waits. */
	while (__atomic_load_n(&far.lock.__data.__lock, __ATOMIC_RELAXED) != 2)
		usleep(1000);
	pthread_mutex_unlock(&far.lock);
	pthread_join(thread, NULL);
	return 0;
}
