/*
 * Marks its actions on the timeline, and has a part of them traced.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <shim/mark.h>
#include <shim/trace.h>
#include <string.h>

static APART void leaf(void)
{
	COUNTED;
}

static APART void part(int times)
{
	COUNTED;
	for (int i = 0; i < times; i++)
		leaf();
}

/* The open calls when tracing resumes differ from those when it stopped. */
static APART void stop_in(void)
{
	COUNTED;
	leaf();
	shim_trace_stop();
	leaf();
}

static APART void start_in(void)
{
	COUNTED;
	leaf();
	shim_trace_start();
	leaf();
}

static void *named(void *unused)
{
	leaf();
	pthread_setname_np(pthread_self(), "painter");
	part(2);
	return unused;
}

int main(int count, char **arguments)
{
	pthread_t thread;

	COUNTED;
	if (count > 1 && !strcmp(arguments[1], "parts")) {
		part(1);
		stop_in();
		part(10);
		start_in();
		part(3);
	} else {
		shim_mark("a mark; with <odd> \033 characters");
		shim_range_begin("load");
		part(2);
		shim_counter("files", 1.5);
		shim_range_end("load");
		shim_counter("files", -2);
		pthread_create(&thread, NULL, named, NULL);
		pthread_join(thread, NULL);
	}
	print_counts();
	return 0;
}
