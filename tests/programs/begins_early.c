/*
 * A program with constructors that call functions; with EMBEDS it is its own
 * profiler, set up in the first of them.
 */
#include <shim/hooks.h>
#include <shim/info.h>
#include <stdio.h>
#include <stdlib.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_on_thread_started
#pragma weak shim_profiler_on_image_loaded
#pragma weak shim_profiler_on_runtime_initialized

#define PLAIN __attribute__((no_instrument_function))

static unsigned started, loaded;

PLAIN static void on_started(struct shim_profiler *profiler, shim_thread thread)
{
	(void)profiler, (void)thread;
	started++;
}

PLAIN static void on_loaded(struct shim_profiler *profiler, shim_image image)
{
	(void)profiler, (void)image;
	loaded++;
}

PLAIN static void on_initialized(struct shim_profiler *profiler)
{
	(void)profiler;
	printf("own: started %u, loaded %d\n", started, loaded > 2);
}

PLAIN __attribute__((constructor(101))) static void embed(void)
{
	struct shim_profiler_handle *handle;

	if (!getenv("EMBEDS") || !shim_profiler_create)
		return;
	handle = shim_profiler_create(NULL);
	shim_profiler_on_thread_started(handle, on_started);
	shim_profiler_on_image_loaded(handle, on_loaded);
	shim_profiler_on_runtime_initialized(handle, on_initialized);
}

static volatile int sink;

__attribute__((noinline)) static void early_call(int number)
{
	sink += number;
}

__attribute__((constructor(102))) static void construct(void)
{
	for (int i = 0; i < 3; i++)
		early_call(i);
}

int main(void)
{
	early_call(1);
	return 3;
}
