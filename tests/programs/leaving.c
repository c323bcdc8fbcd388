/*
 * A frame that a jump skips, or that ends with its thread, is left by unwinding.
 *
 * stream:
 *	E main
 *	E recurses
 *	E recurses
 *	E recurses
 *	E leaf
 *	L leaf
 *	L recurses
 *	L recurses
 *	L recurses
 *	E jumps
 *	E one
 *	E two
 *	E three
 *	X three
 *	X two
 *	X one
 *	E leaf
 *	L leaf
 *	E one
 *	E two
 *	E three
 *	X three
 *	X two
 *	X one
 *	E leaf
 *	L leaf
 *	L jumps
 *	E exits
 *	E down
 *	E down
 *	E down
 *	E leaf
 *	L leaf
 *	X down
 *	X down
 *	X down
 *	X exits
 *	E cancelled
 *	E waits
 *	X waits
 *	X cancelled
 *	E returns
 *	L returns
 *	E handled
 *	E on_signal
 *	E leaf
 *	L leaf
 *	L on_signal
 *	L handled
 *	E escapes
 *	E two
 *	E on_signal
 *	E leaf
 *	L leaf
 *	X on_signal
 *	X two
 *	E leaf
 *	L leaf
 *	L escapes
 *	E two
 *	E on_signal
 *	E leaf
 *	L leaf
 *	L on_signal
 *	L two
 *	E coroutine
 *	E back
 *	E coroutine
 *	E back
 *	E leaf
 *	L leaf
 *	L back
 *	L coroutine
 *	E leaf
 *	L leaf
 *	L back
 *	L coroutine
 *	L main
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

void leaf(void);
void three(int jump);
void two(int how);
void one(int jump);
void jumps(void);
void recurses(int n);
void down(int n);
void *exits(void *argument);
void waits(void);
void *cancelled(void *argument);
void *returns(void *argument);
void on_signal(int number);
void handled(void);
void escapes(void);
void back(void);
void coroutine(void);

static jmp_buf place;
static sigjmp_buf outside;
static sem_t ready;
static volatile int sink, escaping;
static ucontext_t contexts[3];
static int current;

APART void leaf(void)
{
	sink++;
}

APART void three(int jump)
{
	sink++;
	if (jump)
		longjmp(place, 1);
}

APART void two(int how)
{
	if (how < 2)
		three(how);
	else
		raise(SIGUSR1);
	sink++;
}

APART void one(int jump)
{
	two(jump);
	sink++;
}

APART void recurses(int n)
{
	if (n > 0)
		recurses(n - 1);
	else
		leaf();
}

APART void jumps(void)
{
	volatile int i = 0;

	setjmp(place);
	if (i > 0)
		leaf();
	if (i++ < 2)
		one(1);
}

APART void down(int n)
{
	if (n > 0) {
		down(n - 1);
	} else {
		leaf();
		pthread_exit(NULL);
	}
	sink++;
}

void *exits(void *argument)
{
	down(2);
	return argument;
}

APART void waits(void)
{
	sem_post(&ready);
	for (;;)
		pause();
}

void *cancelled(void *argument)
{
	waits();
	return argument;
}

void *returns(void *argument)
{
	return argument;
}

APART void on_signal(int number)
{
	(void)number;
	leaf();
	if (escaping)
		siglongjmp(outside, 1);
	sink++;
}

APART void handled(void)
{
	raise(SIGUSR1);
}

APART void escapes(void)
{
	if (sigsetjmp(outside, 1) == 0)
		two(2);
	leaf();
}

APART void back(void)
{
	int self = current;

	current = 3 - self;
	swapcontext(&contexts[self], &contexts[current]);
	current = self;
	leaf();
}

void coroutine(void)
{
	back();
}

/* The stacks are in one piece of memory, the first coroutine's at the lowest
 * address. */
static QUIET void make(int number, char *memory)
{
	getcontext(&contexts[number]);
	contexts[number].uc_stack.ss_sp = memory + number * 65536;
	contexts[number].uc_stack.ss_size = 65536;
	contexts[number].uc_link = &contexts[number == 1 ? 2 : 0];
	makecontext(&contexts[number], coroutine, 0);
}

static QUIET void run_thread(void *(*call)(void *), int cancel)
{
	pthread_t thread;

	pthread_create(&thread, NULL, call, NULL);
	if (cancel) {
		sem_wait(&ready);
		pthread_cancel(thread);
	}
	pthread_join(thread, NULL);
}

static QUIET void catch_signal(int flags)
{
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = flags };

	sigaction(SIGUSR1, &action, NULL);
}

int main(void)
{
	static char stack[65536], memory[3 * 65536];
	stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };

	recurses(2);
	jumps();
	sem_init(&ready, 0, 0);
	run_thread(exits, 0);
	run_thread(cancelled, 1);
	run_thread(returns, 0);
	catch_signal(0);
	handled();
	sigaltstack(&other, NULL);
	catch_signal(SA_ONSTACK);
	escaping = 1;
	escapes();
	escaping = 0;
	two(2);
	make(1, memory);
	make(2, memory);
	current = 1;
	swapcontext(&contexts[0], &contexts[1]);
	return 0;
}
