/*
 * attached_fork: a program to attach to, whose children go on.
 *
 * A line of standard input makes a child, whose number it prints; the child calls functions
 * until the parent ends.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) static int leaf(int number)
{
	__asm__ volatile("");
	return number + 1;
}

__attribute__((noinline)) static void serve(void)
{
	const struct timespec pause = { 0, 1000000 };

	for (;;) {
		leaf(1);
		nanosleep(&pause, NULL);
	}
}

int main(void)
{
	char line[16];
	pid_t child;

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && line[0] != 'e') {
		child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			serve();
		}
		printf("%d\n", (int)child);
		fflush(stdout);
	}
	puts("wrong 0 interrupted 0");
	return 0;
}
