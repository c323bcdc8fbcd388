/*
 * attached_handler WHEN [inside]: a program to attach to, with a signal handler that runs on
 * a stack of its own.
 *
 * main has called serve, and serve itself.  The innermost call waits for a line and then
 * raises the signal ("later"), or the handler waits for the line ("open").  All of them
 * return.  inside: the signal stack is a variable of main.  (profrun can attach by a second
 * thread, which is in no handler.)
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))

static int is_open;

PLAIN static void await(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	if (read(0, line, sizeof(line)) < 0)
		puts("no line");
}

__attribute__((noinline)) static int leaf(int number)
{
	__asm__ volatile("");
	return number + 1;
}

static void on_signal(int signal)
{
	volatile int number = signal;

	if (is_open)
		await();
	number = leaf(number);
}

__attribute__((noinline, optimize("no-optimize-sibling-calls"))) static int
serve(int depth)
{
	volatile int number = depth;

	if (depth > 1)
		return serve(depth - 1) + number;
	if (!is_open)
		await();
	raise(SIGUSR1);
	return leaf(number);
}

PLAIN static void *rest(void *unused)
{
	pause();
	return unused;
}

int main(int argc, char **argv)
{
	static char memory[65536];
	char inside[65536];
	stack_t stack = { .ss_sp = argc > 2 ? inside : memory,
			  .ss_size = sizeof(memory) };
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_ONSTACK };
	pthread_t other;

	pthread_create(&other, NULL, rest, NULL);
	is_open = argc > 1 && strcmp(argv[1], "open") == 0;
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	serve(2);
	leaf(1);
	puts("wrong 0 interrupted 0");
	return 0;
}
