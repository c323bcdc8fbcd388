/*
 * plugin_host ROUNDS LIBRARY... - opens, calls and closes the libraries one after
 * another; if ROUNDS begins with t, each library has a thread of its own, at the same
 * time.
 */
#include "truth.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static long rounds;
static int moved;

static APART void use(const char *library)
{
	static void *volatile last;
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int (*work)(int);

	COUNTED;
	if (!handle) {
		print_text(dlerror());
		return;
	}
	work = (int (*)(int))dlsym(handle, "work");
	moved += last && last != (void *)work;
	last = (void *)work;
	work(1);
	dlclose(handle);
}

static void *use_often(void *library)
{
	COUNTED;
	for (long i = 0; i < rounds; i++)
		use(library);
	return NULL;
}

int main(int count, char **arguments)
{
	int threads = arguments[1][0] == 't';
	pthread_t thread[8];

	COUNTED;
	rounds = strtol(arguments[1] + threads, NULL, 10);
	for (int i = 2; threads && i < count; i++)
		pthread_create(&thread[i], NULL, use_often, arguments[i]);
	for (int i = 2; threads && i < count; i++)
		pthread_join(thread[i], NULL);
	for (long i = 0; !threads && i < rounds; i++)
		for (int k = 2; k < count; k++)
			use(arguments[k]);
	if (!threads)
		print_text(moved ? "moved\n" : "same place\n");
	print_counts();
	return 0;
}
