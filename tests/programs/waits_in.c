/*
 * Threads in known functions: stack.py compares their stacks.  The first word is the
 * number of threads; then what they do: "sleep" (default), "spin", "wide" (spin below a frame
 * of 900 KiB), "handler" (one waits in a signal handler on a stack of its own), "deep" (a
 * recursion of 20,000).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *what = "sleep";
static volatile unsigned long sink;
static int ready[2];

__attribute__((noinline)) static void report_ready(void)
{
	if (write(ready[1], "x", 1) != 1)
		abort();
}

__attribute__((noinline)) static void rest(void)
{
	report_ready();
	if (strcmp(what, "spin") == 0 || strcmp(what, "wide") == 0)
		for (;;)
			sink++;
	for (;;)
		pause();
}

static inline __attribute__((always_inline)) void inlined(void)
{
	rest();
	sink++;
}

__attribute__((noinline)) static void inner(void)
{
	inlined();
	sink++;
}

__attribute__((noinline)) static void deep(int depth)
{
	char room[64];

	memset(room, depth, sizeof(room));
	if (depth > 0)
		deep(depth - 1);
	else
		inner();
	sink += (unsigned char)room[depth % 64];
}

__attribute__((noinline)) static void wide(void)
{
	char room[900 << 10];

	memset(room, 1, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	inner();
	sink += (unsigned char)room[sink % sizeof(room)];
}

static void handle(int number)
{
	(void)number;
	inner();
}

static void wait_in_handler(void)
{
	struct sigaction action = { .sa_handler = handle,
				    .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_size = 1 << 16 };

	stack.ss_sp = malloc(stack.ss_size);
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

__attribute__((noinline)) static void outer(void)
{
	if (strcmp(what, "handler") == 0)
		wait_in_handler();
	else if (strcmp(what, "deep") == 0)
		deep(20000);
	else if (strcmp(what, "wide") == 0)
		wide();
	else
		inner();
	sink++;
}

static void *thread(void *data)
{
	(void)data;
	outer();
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1, i;
	pthread_t id;
	char byte;

	if (argc > 2)
		what = argv[2];
	if (pipe(ready) != 0)
		return 1;
	for (i = 0; i < count; i++)
		if (pthread_create(&id, NULL, thread, NULL) != 0)
			return 1;
	for (i = 0; i < count; i++)
		if (read(ready[0], &byte, 1) != 1)
			return 1;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
