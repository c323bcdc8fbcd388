/*
 * One thread makes coroutines, twice on the same stacks, and another one runs them.  They never
 * return.
 *
 * tree:
 *	main 1
 *	worker 1
 *	body 4
 *	body;deep 4
 *	body;deep;leaf 200
 */
#include "truth.h"

#include <pthread.h>
#include <semaphore.h>
#include <ucontext.h>

#define STACK 65536

static ucontext_t home, coroutine[2];
static char stacks[2][STACK];
static int now;
static sem_t made, ran;

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

static void *worker(void *unused)
{
	COUNTED;
	(void)unused;
	for (int round = 0; round < 2; round++) {
		sem_wait(&made);
		for (int i = 0; i < 100; i++) {
			now = i % 2;
			swapcontext(&home, &coroutine[now]);
		}
		sem_post(&ran);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	COUNTED;
	sem_init(&made, 0, 0);
	sem_init(&ran, 0, 0);
	if (pthread_create(&thread, NULL, worker, NULL) != 0)
		return 1;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2; i++) {
			getcontext(&coroutine[i]);
			coroutine[i].uc_stack.ss_sp = stacks[i];
			coroutine[i].uc_stack.ss_size = STACK;
			coroutine[i].uc_link = NULL;
			makecontext(&coroutine[i], body, 0);
		}
		sem_post(&made);
		sem_wait(&ran);
	}
	pthread_join(thread, NULL);
	print_counts();
	return 0;
}
