/*
 * A program that knows which of its blocks are unreachable in the end: leaking CASE.
 * Each block is allocated by a function whose name says how the block is kept; blocks
 * of lost_ functions are not, and blocks of below_ functions only by lost ones.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

struct link {
	struct link *next;
	char more[40];
};

static void *volatile kept, *volatile inner;
static __thread void *volatile of_thread;
static uintptr_t hidden;	/* not stored as an address */

#define ALLOCATE(name, size)                                                   \
	APART static void *name(void)                                          \
	{                                                                      \
		return malloc(size);                                           \
	}

ALLOCATE(by_variable, 100)
ALLOCATE(by_inside, 200)
ALLOCATE(by_thread_variable, 300)
ALLOCATE(by_stack, 400)
ALLOCATE(by_block, sizeof(struct link))
ALLOCATE(by_mapping, 500)
ALLOCATE(lost_at_once, 600)
ALLOCATE(lost_head, sizeof(struct link))
ALLOCATE(below_head, sizeof(struct link))
ALLOCATE(lost_large, 5000000)
ALLOCATE(by_other_stack, 700)
ALLOCATE(by_other_thread, 800)
ALLOCATE(by_running_stack, 900)

APART static void *lost_circle(void)
{
	struct link *one = malloc(sizeof(*one)), *two = malloc(sizeof(*two));

	*one = (struct link){ two, "" };
	*two = (struct link){ one, "" };
	return one;
}

APART static void hide(void *block)
{
	hidden ^= (uintptr_t)block * 7;
}

APART static void forget_stack(void)
{
	volatile char wiped[4000];

	for (unsigned i = 0; i < sizeof(wiped); i++)
		wiped[i] = 0;
}

APART static void make(void)
{
	struct link *list, *lost;

	kept = by_variable();
	inner = (char *)by_inside() + 17;
	of_thread = by_thread_variable();
	list = by_block();
	list->next = by_block();
	*(void **)kept = list;
	list->next->next = NULL;
	hide(lost_at_once());
	lost = lost_head();
	lost->next = below_head();
	lost->next->next = below_head();
	lost->next->next->next = NULL;
	hide(lost);
	hide(lost_circle());
}

static void plain(void)
{
	void *volatile here = by_stack();

	make();
	forget_stack();
	exit(here == NULL);
}

static int ready[2], forever[2];

APART static void *waits(void *argument)
{
	void *volatile here = by_other_stack();
	char byte = 0;

	of_thread = by_other_thread();
	if (write(ready[1], &byte, 1) != 1 || read(forever[0], &byte, 1) != 1)
		_exit(1);
	return here ? argument : NULL;
}

APART static void *runs(void *argument)
{
	void *volatile here = by_running_stack();
	char byte = 0;

	if (write(ready[1], &byte, 1) != 1)
		_exit(1);
	while (here)
		;
	return argument;
}

static void threads(void)
{
	pthread_t thread;
	char bytes[2];

	if (pipe(ready) || pipe(forever))
		_exit(1);
	pthread_create(&thread, NULL, waits, NULL);
	pthread_create(&thread, NULL, runs, NULL);
	if (read(ready[0], bytes, 1) != 1 || read(ready[0], bytes, 1) != 1)
		_exit(1);
	plain();
}

/* Unmapped memory cannot be read. */
APART static void unmap(void)
{
	char *large = lost_large(), *end = large + 5000000;

	large = (char *)(((uintptr_t)large + 4095) & ~(uintptr_t)4095);
	end = (char *)((uintptr_t)end & ~(uintptr_t)4095);
	munmap(large, 1000 * 4096ul);
	mprotect(large + 1000 * 4096, 100 * 4096ul, PROT_NONE);
	hide(end);
}

static void unmapped(void)
{
	unmap();
	forget_stack();
	plain();
}

APART static void map(void)
{
	void **page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	page[10] = by_mapping();
	hide(page);
}

static void mapped(void)
{
	map();
	forget_stack();
	plain();
}

static void killed(void)
{
	make();
	raise(SIGKILL);
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "plain", plain },	{ "threads", threads },
		      { "unmapped", unmapped }, { "mapped", mapped },
		      { "killed", killed } };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (count > 1 && !strcmp(cases[i].name, arguments[1]))
			cases[i].run();
	return 0;
}
