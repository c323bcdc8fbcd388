/* Moves to another processor every few calls. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) void leaf(void)
{
	__asm__ volatile("");
}

__attribute__((noinline)) void hop(int to)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(to, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (int i = 0; i < 10; i++)
		leaf();
}

int main(void)
{
	int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);

	for (int i = 0; i < 2000; i++)
		hop(i % processors);
	printf("%d processors\n", processors);
	return 0;
}
