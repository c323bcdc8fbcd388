/*
 * storm LIBRARY...: starts and ends threads and loads and unloads libraries without
 * pause, until standard input ends.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile int stopped;

static int leaf(int n)
{
	return n + 1;
}

static void *brief(void *unused)
{
	leaf(1);
	return unused;
}

static void *thread_storm(void *unused)
{
	while (!stopped) {
		pthread_t thread[4];

		for (int i = 0; i < 4; i++)
			pthread_create(&thread[i], NULL, brief, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
	}
	return unused;
}

static void *library_storm(void *path)
{
	while (!stopped) {
		void *library = dlopen(path, RTLD_NOW);

		if (!library)
			return path;
		dlclose(library);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[64];
	int n = 0;
	char c;

	pthread_create(&thread[n++], NULL, thread_storm, NULL);
	pthread_create(&thread[n++], NULL, thread_storm, NULL);
	for (int i = 1; i < argc; i++)
		pthread_create(&thread[n++], NULL, library_storm, argv[i]);
	printf("fds 0\nready\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	stopped = 1;
	while (n-- > 0)
		pthread_join(thread[n], NULL);
	printf("fds 0\ndone\n");
	return 42;
}
