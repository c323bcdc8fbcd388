/*
 * Functions whose code is decoded for arguments and results: instructions that name no
 * register, and a jump to an address from a table.
 */
#include <stdio.h>

static int sum;

__attribute__((noinline)) static long widened(int n, long last)
{
	long values[4] = { 1, 2, 3, last };

	return values[n & 3] + n;
}

__attribute__((noinline)) static int add(int n)
{
	sum += n;
	return sum;
}

__attribute__((noinline)) static int choose(int n)
{
	add(n);
	switch (n) {
	case 0: return sum * 3;
	case 1: return sum + 11;
	case 2: puts("two"); return 5;
	case 3: return sum ^ 9;
	case 4: puts("four"); return 6;
	case 5: return sum - 1;
	default: return 0;
	}
}

int main(int count, char **arguments)
{
	int all = 0;

	(void)arguments;
	for (int i = 0; i < 6; i++)
		all += choose(i * count);
	printf("%d %ld\n", all, widened(2, 5));
	return 0;
}
