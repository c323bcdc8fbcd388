/*
 * A program with known allocations on each path: remembered CASE. tests/whole/memory.py
 * has the same figures. libc's own allocations happen in spawn().
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile block[100];
static void *volatile sink;

APART static void get(int from, int count, size_t size)
{
	for (int i = 0; i < count; i++)
		block[from + i] = malloc(size);
}

APART static void give(int from, int count)
{
	for (int i = 0; i < count; i++) {
		free(block[from + i]);
		block[from + i] = NULL;
	}
}

APART static void one(void)
{
	get(0, 10, 100);
}

APART static void two(void)
{
	get(10, 20, 50);
	give(10, 20);
}

APART static void grow(void)
{
	void *volatile grown = malloc(10);

	for (size_t size = 1000; size <= 3000; size += 1000)
		grown = realloc(grown, size);
	free(grown);
}

APART static void brief(void)
{
	for (int i = 0; i < 50; i++) {
		sink = malloc(24);
		free(sink);
	}
}

/* The peak is between its two halves. */
APART static void top(void)
{
	sink = malloc(1000000);
	two();
	free(sink);
}

APART static void leak(void)
{
	for (int i = 0; i < 3; i++)
		sink = malloc(77);
}

static void *in_thread(void *argument)
{
	get(40, 5, 11);
	give(0, 10);
	return argument;
}

APART static void spawn(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
}

static void all(void)
{
	one();
	top();
	brief();
	grow();
	spawn();
	give(40, 5);
	leak();
}

static jmp_buf back;

APART static void jumps(void)
{
	sink = malloc(5);
	longjmp(back, 1);
}

/* After a jump, allocations belong to the path of the jump's target. */
static void jumped(void)
{
	if (!setjmp(back))
		jumps();
	sink = malloc(7);
}

static void forked(void)
{
	pid_t pid;

	one();
	pid = fork();
	if (pid == 0) {
		give(0, 10);
		leak();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void killed(void)
{
	one();
	two();
	leak();
	raise(SIGKILL);
}

static void on_signal(int number)
{
	(void)number;
	sink = malloc(33);
}

static void handled(void)
{
	static char stack[65536];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_ONSTACK };

	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	one();
	raise(SIGUSR1);
	leak();
}

/* tests/whole/memory.py and tests/bench/memory know these amounts.  Every other block
 * is freed, every fourth one after a realloc. */
APART static void turn_over(int count, size_t size)
{
	for (int i = 0; i < count; i++) {
		void *got = malloc(size);

		if (i % 4 == 0)
			got = realloc(got, size * 2);
		if (i % 2 == 0)
			free(got);
	}
}

APART static void small(void)
{
	turn_over(40000, 24);
}

APART static void middling(void)
{
	turn_over(4000, 1500);
}

APART static void large(void)
{
	turn_over(400, 20000);
}

static void sampled(void)
{
	small();
	middling();
	large();
}

/* Blocks that stay live while time passes. */
static void aged(void)
{
	get(0, 10, 100);
	usleep(60000);
	get(10, 20, 50);
	give(0, 30);
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "all", all },	    { "jumped", jumped },
		      { "forked", forked }, { "killed", killed },
		      { "handled", handled }, { "sampled", sampled },
		      { "aged", aged } };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (count > 1 && !strcmp(cases[i].name, arguments[1]))
			cases[i].run();
	return 0;
}
