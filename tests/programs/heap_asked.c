/*
 * A program that requests snapshots of its heap: heap_asked CASE.  Each block is
 * allocated by a function whose name says how the block is kept, as in leaking.c.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <shim/heap.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *volatile kept;
static void **volatile list;
static uintptr_t hidden;	/* not stored as an address */

#define ALLOCATE(name, size)                                                   \
	APART static void *name(void)                                          \
	{                                                                      \
		return malloc(size);                                           \
	}

ALLOCATE(by_variable, 100)
ALLOCATE(by_register, 300)
ALLOCATE(by_list, 512)
ALLOCATE(lost_at_once, 608)
ALLOCATE(lost_head, 48)
/* With a size that is no multiple of 16, libc's own pointer to the memory after the
 * last block would point into this block. */
ALLOCATE(below_head, 64)

APART static void lose(void)
{
	void **head = lost_head();

	hidden ^= (uintptr_t)lost_at_once() * 7;
	head[0] = below_head();
	hidden ^= (uintptr_t)head * 7;
}

APART static void forget_stack(void)
{
	volatile char wiped[4000];

	for (unsigned i = 0; i < sizeof(wiped); i++)
		wiped[i] = 0;
}

/* Other blocks are live each time. */
static void itself(void)
{
	kept = by_variable();
	forget_stack();
	shim_heap_snapshot();
	lose();
	forget_stack();
	shim_heap_snapshot();
	free(kept);
	kept = NULL;
	list = by_list();
	list[0] = NULL;
	forget_stack();
	shim_heap_snapshot();
	free(list);
	list = NULL;
}

static void killed(void)
{
	itself();
	raise(SIGKILL);
}

static void forked(void)
{
	int status;
	pid_t child;

	kept = by_variable();
	shim_heap_snapshot();
	child = fork();
	if (child == 0) {
		list = by_list();
		list[0] = NULL;
		shim_heap_snapshot();
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		_exit(1);
	shim_heap_snapshot();
}

/* The only pointer is in a register when the snapshot is made. */
static void in_register(void)
{
#if defined(__x86_64__)
	register void *here __asm__("rbx") = by_register();
#else
	register void *here __asm__("x19") = by_register();
#endif

	forget_stack();
	__asm__ volatile("" : "+r"(here));
	shim_heap_snapshot();
	__asm__ volatile("" : "+r"(here));
}

/* Reads a byte and writes a byte: the test requests a snapshot in between. */
static void wait_for_byte(void)
{
	char byte;

	if (read(0, &byte, 1) != 1 || write(1, &byte, 1) != 1)
		_exit(1);
}

static void asked(void)
{
	kept = by_variable();
	wait_for_byte();
	lose();
	forget_stack();
	wait_for_byte();
	wait_for_byte();
}

/* --- live memory over time --- */

APART static void *step(void)
{
	return malloc(10000);
}

static void stairs(void)
{
	struct timespec pause = { 0, 5000000 };
	void **all = calloc(200, sizeof(*all));

	for (int i = 0; i < 150; i++) {
		all[i] = step();
		nanosleep(&pause, NULL);
	}
	for (int i = 0; i < 100; i++)
		free(all[i]);
	kept = all;
	nanosleep(&pause, NULL);
}

/* Runs on a small stack. */
static void *allocate_small(void *argument)
{
	struct timespec pause = { 0, 3000000 };

	for (int i = 0; i < 40; i++) {
		free(step());
		nanosleep(&pause, NULL);
	}
	return argument;
}

static void small(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384);
	pthread_create(&thread, &attributes, allocate_small, NULL);
	pthread_join(thread, NULL);
}

/* --- during other requests --- */

static uint32_t is_over;

static void *allocate(void *argument)
{
	void *mine[50] = { NULL };

	for (unsigned i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++) {
		free(mine[i % 50]);
		mine[i % 50] = malloc(i % 777 + 8);
	}
	for (unsigned i = 0; i < 50; i++)
		free(mine[i]);
	return argument;
}

static void threads(void)
{
	pthread_t all[4];

	kept = by_variable();
	for (int i = 0; i < 4; i++)
		pthread_create(&all[i], NULL, allocate, NULL);
	for (int i = 0; i < 20; i++) {
		struct timespec pause = { 0, 2000000 };

		nanosleep(&pause, NULL);
		shim_heap_snapshot();
	}
	is_over = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(all[i], NULL);
}

static void on_signal(int number)
{
	(void)number;
	shim_heap_snapshot();
}

/* Signals arrive at any point of the allocator. */
static void signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&thread, NULL, allocate, NULL);
	for (int i = 0; i < 20; i++) {
		struct timespec pause = { 0, 1000000 };

		pthread_kill(thread, SIGUSR1);
		nanosleep(&pause, NULL);
	}
	is_over = 1;
	pthread_join(thread, NULL);
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "itself", itself },   { "killed", killed },
		      { "forked", forked },   { "register", in_register },
		      { "asked", asked },     { "stairs", stairs },
		      { "small", small },     { "threads", threads },
		      { "signals", signals } };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (count > 1 && !strcmp(cases[i].name, arguments[1]))
			cases[i].run();
	return 0;
}
