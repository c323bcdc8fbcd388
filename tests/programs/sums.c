/*
 * Calls a library's function a hundred times.
 */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	long sum = 0;

	for (long i = 1; i <= 100; i++)
		sum += labs(i);
	printf("%ld\n", sum);
	return 0;
}
