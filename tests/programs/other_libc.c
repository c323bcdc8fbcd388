/*
 * other_libc [EXEC...] - typical actions of a program of another libc than glibc:
 * threads, a handler that jumps, a child, a shell, and the end by a signal.  With EXEC
 * it executes that program instead.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8

static sigjmp_buf before;

static void on_fault(int signal)
{
	(void)signal;
	siglongjmp(before, 1);
}

static void *use_memory(void *number)
{
	char *memory = malloc(100000);

	memset(memory, 1, 100000);
	free(memory);
	return number;
}

static long sum_threads(void)
{
	pthread_t thread[THREADS];
	void *result;
	long sum = 0;

	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, use_memory, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &result);
		sum += (long)result;
	}
	return sum;
}

static void fault(void)
{
	signal(SIGSEGV, on_fault);
	if (sigsetjmp(before, 1) == 0)
		*(volatile int *)8 = 1;
	puts("back");
}

static int wait_for_child(void)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0)
		_exit(3);
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

int main(int words, char **word)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	if (words > 1) {
		execv(word[1], word + 1);
		return 126;
	}
	printf("threads %ld\n", sum_threads());
	fault();
	printf("child %d\n", wait_for_child());
	printf("shell %d\n", WEXITSTATUS(system("exit 4")));
	abort();
}
