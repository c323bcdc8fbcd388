/* Runs functions of a few instructions until its standard input ends. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static int one_more(int n)
{
	__asm__ volatile("");
	return n + 1;
}

__attribute__((noinline)) static int two_more(int n)
{
	return one_more(one_more(n));
}

int main(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	unsigned wrong = 0;

	printf("ready\n");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0)
		for (int i = 0; i < 2000000; i++)
			wrong += two_more(i) != i + 2;
	printf("wrong %u\n", wrong);
	return 7;
}
