/*
 * Coroutines that a signal switches at any instruction, also inside a hook.
 *
 * tree:
 *	main 1
 *	main;outer 200000
 *	main;outer;middle 200000
 *	main;outer;middle;leaf 400000
 *	main;outer;leaf 200000
 *	main;after 10
 *	main;after;leaf 10
 *	body 2
 *	body;outer 400000
 *	body;outer;middle 400000
 *	body;outer;middle;leaf 800000
 *	body;outer;leaf 400000
 */
#define _GNU_SOURCE
#include "truth.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include <ucontext.h>

#define COROUTINES 3 /* the first one is main */
#define ROUNDS	   200000
#define TICK_US	   200
#define STACK	   65536

static ucontext_t context[COROUTINES];
static char stack[COROUTINES][STACK];
static volatile bool is_done[COROUTINES];
static volatile int current;

static APART void leaf(void)
{
	COUNTED;
}

static APART void middle(void)
{
	COUNTED;
	leaf();
	leaf();
}

static APART void outer(void)
{
	COUNTED;
	middle();
	leaf();
}

static APART void after(void)
{
	COUNTED;
	leaf();
}

/* SIGALRM must be blocked. */
QUIET static void switch_to_next(void)
{
	int from = current, to = from;

	do
		to = (to + 1) % COROUTINES;
	while (is_done[to]);
	current = to;
	if (to != from)
		swapcontext(&context[from], &context[to]);
}

QUIET static void on_tick(int signal)
{
	(void)signal;
	switch_to_next();
}

QUIET static void mask_ticks(int how)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGALRM);
	sigprocmask(how, &mask, NULL);
}

static void body(void)
{
	COUNTED;
	mask_ticks(SIG_UNBLOCK);
	for (int i = 0; i < ROUNDS; i++)
		outer();
	mask_ticks(SIG_BLOCK);
	is_done[current] = true;
	switch_to_next();
}

int main(void)
{
	struct itimerval ticks = { { 0, TICK_US }, { 0, TICK_US } };
	struct sigaction action = { .sa_handler = on_tick,
				    .sa_flags = SA_RESTART };

	COUNTED;
	mask_ticks(SIG_BLOCK);
	for (int i = 1; i < COROUTINES; i++) {
		getcontext(&context[i]);
		context[i].uc_stack.ss_sp = stack[i];
		context[i].uc_stack.ss_size = STACK;
		makecontext(&context[i], body, 0);
	}
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &ticks, NULL);
	mask_ticks(SIG_UNBLOCK);
	for (int i = 0; i < ROUNDS; i++)
		outer();
	mask_ticks(SIG_BLOCK);
	while (!is_done[1] || !is_done[2])
		switch_to_next();
	for (int i = 0; i < 10; i++)
		after();
	print_counts();
	return 0;
}
