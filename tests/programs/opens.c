/*
 * opens PLUGIN ROUNDS - calls dlopen in all ways, valid and invalid; then ROUNDS times
 * in four threads at once.  (Run by events.py.)
 */
#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>

static const char *plugin;
static long rounds;

static void say(const char *what)
{
	const char *reason = dlerror();

	print_text(what);
	print_text(": ");
	print_text(reason ? reason : "fine");
	print_text("\n");
}

static void *storm(void *argument)
{
	for (long i = 0; i < rounds; i++) {
		void *handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);

		if (!handle || !dlsym(handle, "work"))
			print_text("not opened\n");
		if (handle)
			dlclose(handle);
	}
	return argument;
}

int main(int count, char **arguments)
{
	pthread_t threads[4];
	void *handle;

	plugin = arguments[1];
	rounds = count > 2 ? atol(arguments[2]) : 1;
	dlerror();
	dlopen("/nope", RTLD_NOW);
	say("nope");
	say("again");
	dlopen("libnope.so.7", RTLD_NOW);
	dlopen("$ORIGIN/nope", RTLD_NOW);
	say("origin");
	dlopen("libnope.so.7", RTLD_NOW);
	say("name");
	dlopen("/nope", RTLD_NOW | RTLD_NOLOAD);
	say("noload");
	dlopen("/nope", RTLD_NOW);
	handle = dlopen(NULL, RTLD_NOW);
	say("itself");
	dlclose(handle);
	handle = dlopen(plugin, RTLD_NOW);
	say("plugin");
	dlclose(handle);
	handle = dlmopen(LM_ID_NEWLM, plugin, RTLD_NOW);
	say("space");
	if (handle)
		dlclose(handle);
	dlmopen(LM_ID_BASE, "/nope", RTLD_NOW);
	say("space nope");
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, storm, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
