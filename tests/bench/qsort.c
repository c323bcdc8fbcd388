/* Sorts 200,000 integers twenty times: one hot function that libc calls. */
#include <stdio.h>
#include <stdlib.h>

#define COUNT  200000
#define ROUNDS 20

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

static void fill(int *numbers, unsigned seed)
{
	for (int i = 0; i < COUNT; i++) {
		seed = seed * 1664525u + 1013904223u;
		numbers[i] = (int)(seed >> 1);
	}
}

int main(void)
{
	static int numbers[COUNT];
	unsigned sum = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		fill(numbers, i);
		qsort(numbers, COUNT, sizeof(numbers[0]), compare);
		sum = sum * 31 + (unsigned)numbers[COUNT / 2];
	}
	printf("%u\n", sum);
	return 0;
}
