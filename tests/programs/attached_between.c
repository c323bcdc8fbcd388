/*
 * attached_between: a program to attach to.  At each line of standard input, it begins a
 * thread that computes for ever.
 */
#include <pthread.h>
#include <stdio.h>

__attribute__((noinline)) static void *compute(void *unused)
{
	for (volatile unsigned long i = 0;; i++)
		;
	return unused;
}

int main(void)
{
	pthread_t thread;
	int c;

	puts("ready");
	fflush(stdout);
	while ((c = getchar()) != EOF)
		if (c == '\n') {
			pthread_create(&thread, NULL, compute, NULL);
			puts("begun");
			fflush(stdout);
		}
	return 0;
}
