/* Prints its mappings, after some calls and with a second live thread. */
#include "truth.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>

static sem_t ready, done;

static void *worker(void *argument)
{
	sem_post(&ready);
	sem_wait(&done);
	return argument;
}

int main(void)
{
	pthread_t thread;
	char buffer[4096];
	ssize_t size;
	int fd;

	sem_init(&ready, 0, 0);
	sem_init(&done, 0, 0);
	pthread_create(&thread, NULL, worker, NULL);
	sem_wait(&ready);
	fd = open("/proc/self/maps", O_RDONLY);
	while ((size = read(fd, buffer, sizeof(buffer) - 1)) > 0) {
		buffer[size] = '\0';
		print_text(buffer);
	}
	sem_post(&done);
	pthread_join(thread, NULL);
	return 0;
}
