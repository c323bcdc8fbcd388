/*
 * A program with heap errors: heedless CASE.  With and without shim it ends in the same
 * way.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *volatile sink;

APART static void foreign(void)
{
	static char memory[100] __attribute__((aligned(16)));

	free(memory + 16);
}

APART static void twice(void)
{
	void *volatile block = malloc(5000);

	sink = malloc(10);
	free(block);
	free(block);
}

APART static void odd(void)
{
	char *volatile block = malloc(100);

	free(block + 1);
}

/* Allocates until no memory is left, three times. */
APART static void out_of_memory(void)
{
	struct rlimit limit = { 400ul << 20, 400ul << 20 };
	static void *blocks[100000];
	unsigned long counts[3];

	setrlimit(RLIMIT_AS, &limit);
	for (int round = 0; round < 3; round++) {
		unsigned long i = 0;

		while (i < 100000 && (blocks[i] = malloc(50000)) != NULL)
			i++;
		counts[round] = i;
		if (errno != ENOMEM || malloc(SIZE_MAX / 2) ||
		    realloc(blocks[0], SIZE_MAX / 4) ||
		    calloc(SIZE_MAX / 16, 3))
			print_text("there was more\n");
		while (i > 0)
			free(blocks[--i]);
	}
	if (counts[0] < 1000 || counts[1] < counts[0] / 2 ||
	    counts[2] < counts[0] / 2)
		print_text("there was less\n");
	free(malloc(100));
	print_text("done\n");
}

/* Allocates small blocks, so that shim's table has to grow meanwhile.  Returns their
 * number. */
APART static unsigned long take_all(void)
{
	struct rlimit limit;
	void **list = NULL, **next;
	unsigned long count = 0;

	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = 60ul << 20;
	setrlimit(RLIMIT_AS, &limit);
	while ((next = malloc(24)) != NULL) {
		*next = list;
		list = next;
		count++;
	}
	for (; list; list = next) {
		next = *list;
		free(list);
	}
	return count;
}

APART static void out_of_notes(void)
{
	print_text(take_all() > 100000 ? "many\n" : "few\n");
}

/* The same.  Allocates for as long again, and is killed. */
APART static void out_of_notes_killed(void)
{
	clock_t end;

	take_all();
	end = 2 * clock() + CLOCKS_PER_SEC / 10;
	while (clock() < end)
		free(malloc(100));
	kill(getpid(), SIGKILL);
}

/* The same.  A child has memory again. */
APART static void out_of_notes_forked(void)
{
	struct rlimit limit;

	take_all();
	getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_AS, &limit);
	if (fork() == 0)
		free(malloc(100));
	else
		wait(NULL);
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "foreign", foreign },
		      { "twice", twice },
		      { "odd", odd },
		      { "out_of_memory", out_of_memory },
		      { "out_of_notes", out_of_notes },
		      { "out_of_notes_killed", out_of_notes_killed },
		      { "out_of_notes_forked", out_of_notes_forked } };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (count > 1 && !strcmp(cases[i].name, arguments[1]))
			cases[i].run();
	return 7;
}
