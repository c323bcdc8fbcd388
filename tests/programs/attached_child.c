/*
 * attached_child: waits in open calls, and then forks; the child and its parent make the
 * same calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int sum;

__attribute__((noinline)) static void leaf(int number)
{
	sum += number;
}

__attribute__((noinline)) static pid_t inner(void)
{
	char line[8];
	pid_t child;

	puts("ready");
	fflush(stdout);
	if (read(0, line, sizeof(line)) < 0)
		abort();
	child = fork();
	if (child < 0 || (child > 0 && waitpid(child, NULL, 0) != child))
		abort();
	for (int i = 0; i < 10; i++)
		leaf(i);
	return child;
}

__attribute__((noinline)) static pid_t outer(void)
{
	pid_t child = inner();

	leaf(1);
	return child;
}

int main(void)
{
	pid_t child = outer();

	leaf(2);
	if (child > 0)
		puts("wrong 0 interrupted 0");
	return 0;
}
