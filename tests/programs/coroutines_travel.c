/*
 * When another thread resumes a coroutine, every call is still counted.
 *
 * A limit: its open frames stay with the first thread.  Calls that it makes on the
 * second thread have a root of their own, and a return from one of the open frames is a
 * leave without an enter.
 *
 * orphans: 1
 * tree:
 *	main 1
 *	worker 2
 *	worker;leaf 100
 *	travelling 1
 *	*
 */
#include "truth.h"

#include <pthread.h>
#include <ucontext.h>

static ucontext_t traveller, base[2];
static char travelling_stack[65536];
static int who;

static APART void leaf(void)
{
	COUNTED;
}

static void travelling(void)
{
	COUNTED;
	for (int i = 0; i < 100; i++) {
		leaf();
		swapcontext(&traveller, &base[who]);
	}
}

/* Resumes the same coroutine 50 times, after the other thread did. */
static void *worker(void *argument)
{
	COUNTED;
	who = (int)(long)argument;
	for (int i = 0; i < 50; i++) {
		swapcontext(&base[who], &traveller);
		leaf();
	}
	return NULL;
}

int main(void)
{
	COUNTED;
	getcontext(&traveller);
	traveller.uc_stack.ss_sp = travelling_stack;
	traveller.uc_stack.ss_size = sizeof(travelling_stack);
	traveller.uc_link = NULL;
	makecontext(&traveller, travelling, 0);
	for (long i = 0; i < 2; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, worker, (void *)i);
		pthread_join(thread, NULL);
	}
	print_counts();
	return 0;
}
