/*
 * Forbids itself to read the processor's counter; the kernel passes the ban on to
 * threads, forks and executed programs.
 *
 * usage: no_clock call|thread|fork|exec|spawned|handler|vfork
 *
 * With EARLY: a library that forbids it before anything else runs.
 */
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

QUIET static void close_clock(void)
{
#ifdef PR_SET_TSC
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
#endif
}

#ifdef EARLY
__attribute__((constructor)) QUIET static void begin(void)
{
	close_clock();
}
#else

APART void leaf(void)
{
	COUNTED;
}

APART void work(void)
{
	COUNTED;
	for (int i = 0; i < 5; i++)
		leaf();
}

APART void *worker(void *argument)
{
	COUNTED;
	work();
	return argument;
}

/* The second thread inherits the state of the first one. */
QUIET static void use_threads(void)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		pthread_create(&thread, NULL, worker, NULL);
		pthread_join(thread, NULL);
	}
}

QUIET static void use_fork(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		work();
		use_threads();
		_exit(7);
	}
	waitpid(child, &status, 0);
	if (status != 7 << 8)
		abort();
}

QUIET static void handle(int number)
{
	(void)number;
	work();
	close_clock();
	work();
}

/* Runs on a stack of its own. */
QUIET static void use_handler(void)
{
	static char memory[65536];
	const stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	struct sigaction action = { .sa_handler = handle,
				    .sa_flags = SA_ONSTACK };

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

/* The child shares this thread's data but has a ban of its own. */
QUIET static void use_vfork(void)
{
	int status;
	pid_t child = vfork();

	if (child == 0) {
		work();
		close_clock();
		work();
		_exit(7);
	}
	waitpid(child, &status, 0);
	if (status != 7 << 8)
		abort();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	work();
	if (strcmp(how, "handler") == 0)
		use_handler();
	else if (strcmp(how, "vfork") == 0)
		use_vfork();
	else
		close_clock();
	work();
	if (strcmp(how, "thread") == 0)
		use_threads();
	else if (strcmp(how, "fork") == 0)
		use_fork();
	else if (strcmp(how, "exec") == 0)
		execl(argv[0], argv[0], "spawned", (char *)NULL);
	else if (strcmp(how, "spawned") == 0)
		use_threads();
	print_counts();
	return 0;
}
#endif
