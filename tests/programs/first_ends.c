/*
 * first_ends LIBRARY - the first thread ends, and with it the content of the process's
 * /proc directory; another thread goes on, opens a library, and ends the program.
 */
#include "truth.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_t first;

static APART void leaf(void)
{
	COUNTED;
}

static APART void late(void)
{
	COUNTED;
	leaf();
}

static void *go_on(void *path)
{
	void *library;
	int (*work)(int);

	COUNTED;
	pthread_join(first, NULL);
	late();
	library = dlopen(path, RTLD_NOW);
	work = library ? (int (*)(int))dlsym(library, "work") : NULL;
	if (work)
		printf("%d\n", work(3));
	late();
	exit(3);
}

int main(int count, char **arguments)
{
	pthread_t thread;

	COUNTED;
	first = pthread_self();
	if (count > 1)
		pthread_create(&thread, NULL, go_on, arguments[1]);
	pthread_exit(NULL);
}
