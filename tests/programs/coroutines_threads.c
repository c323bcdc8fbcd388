/*
 * Coroutine stacks in memory that the system merges with the stack of their thread.
 *
 * tree:
 *	main 1
 *	worker 1
 *	worker;leaf 100
 *	body 2
 *	body;deep 2
 *	body;deep;leaf 100
 */
#include "truth.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK 65536

static ucontext_t home, coroutine[2];
static int now;
static char *stacks;

static APART void leaf(void)
{
	COUNTED;
}

static APART void deep(void)
{
	COUNTED;
	for (int i = 0; i < 50; i++) {
		leaf();
		swapcontext(&coroutine[now], &home);
	}
}

static void body(void)
{
	COUNTED;
	deep();
}

static void *worker(void *argument)
{
	COUNTED;
	for (int i = 0; i < 2; i++) {
		getcontext(&coroutine[i]);
		coroutine[i].uc_stack.ss_sp = stacks + i * STACK;
		coroutine[i].uc_stack.ss_size = STACK;
		coroutine[i].uc_link = &home;
		makecontext(&coroutine[i], body, 0);
	}
	for (int i = 0; i < 50; i++)
		for (now = 0; now < 2; now++) {
			swapcontext(&home, &coroutine[now]);
			leaf();
		}
	for (now = 0; now < 2; now++)
		swapcontext(&home, &coroutine[now]);
	return argument;
}

int main(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	/* The thread's stack is in the middle of the memory. */
	char *memory = mmap(NULL, 8 * STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	COUNTED;
	stacks = memory + 4 * STACK;
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, memory, 4 * STACK);
	if (pthread_create(&thread, &attributes, worker, NULL))
		print_text("no thread\n");
	else
		pthread_join(thread, NULL);
	print_counts();
	return 0;
}
