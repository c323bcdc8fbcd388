/*
 * Gets a signal again and again, from itself or from another process, and makes calls
 * in between whose number depends on the signal.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static APART void first(void)
{
	COUNTED;
}

static APART void second(void)
{
	COUNTED;
}

static APART void third(void)
{
	COUNTED;
}

static APART void fourth(void)
{
	COUNTED;
}

static void on_signal(int signal)
{
	handled += signal == SIGUSR1;
}

static int is_default(void)
{
	struct sigaction action;

	sigaction(SIGUSR1, NULL, &action);
	return action.sa_handler == SIG_DFL && action.sa_flags == 0;
}

static int has_handler(void)
{
	struct sigaction action;

	sigaction(SIGUSR1, NULL, &action);
	return action.sa_handler == on_signal;
}

static void three_parts(void)
{
	first();
	raise(SIGUSR1);
	second();
	raise(SIGUSR1);
	third();
}

/* Signals of its own: once by sigaction, once by signal, once for one time, once
 * ignored. */
static void handlers(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	int seen = is_default();

	first();
	sigaction(SIGUSR1, &action, NULL);
	seen += has_handler();
	raise(SIGUSR1);
	second();
	seen += signal(SIGUSR1, on_signal) == on_signal;
	raise(SIGUSR1);
	third();
	action.sa_flags = (int)SA_RESETHAND;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	second();
	action.sa_handler = SIG_IGN;
	action.sa_flags = 0;
	sigaction(SIGUSR1, &action, &action);
	seen += action.sa_handler == SIG_DFL;
	raise(SIGUSR1);
	second();
	printf("%d %d\n", seen, (int)handled);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int restarts(void)
{
	struct sigaction action;

	sigaction(SIGUSR1, NULL, &action);
	return (action.sa_flags & SA_RESTART) != 0;
}

static void old_ways(void)
{
	int seen[8] = { 0 }, n = 0;

	first();
	seen[n++] = sigset(SIGUSR1, on_signal) == SIG_DFL;
	raise(SIGUSR1);
	second();
	seen[n++] = sigset(SIGUSR1, SIG_HOLD) == on_signal;
	raise(SIGUSR1);
	second();
	seen[n++] = sigset(SIGUSR1, on_signal) == SIG_HOLD;
	third();
	seen[n++] = sigignore(SIGUSR1) == 0;
	seen[n++] = signal(SIGUSR1, on_signal) == SIG_IGN;
	seen[n++] = restarts();
	siginterrupt(SIGUSR1, 1);
	seen[n++] = !restarts() && has_handler();
	raise(SIGUSR1);
	second();
	for (int i = 0; i < n; i++)
		printf("%d ", seen[i]);
	printf("%d\n", (int)handled);
}

static pthread_barrier_t barrier;

static void *beside(void *unused)
{
	first();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	second();
	pthread_barrier_wait(&barrier);
	raise(SIGUSR1);
	pthread_barrier_wait(&barrier);
	third();
	return unused;
}

static void two_threads(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, beside, NULL);
	pthread_barrier_wait(&barrier);
	first();
	raise(SIGUSR1);
	pthread_barrier_wait(&barrier);
	second();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	third();
	pthread_join(thread, NULL);
}

static void child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		three_parts();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	fourth();
}

/* Each line of input requests another one. */
static void asked(void)
{
	void (*const parts[])(void) = { first, second, third, fourth };

	for (int i = 0; i < 4; i++) {
		char c;

		if (read(0, &c, 1) != 1)
			break;
		parts[i]();
		if (write(1, "x", 1) != 1)
			break;
	}
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";

	COUNTED;
	if (!strcmp(what, "handlers"))
		handlers();
	else if (!strcmp(what, "old"))
		old_ways();
	else if (!strcmp(what, "threads"))
		two_threads();
	else if (!strcmp(what, "fork"))
		child();
	else if (!strcmp(what, "asked"))
		asked();
	else
		three_parts();
	return 0;
}
