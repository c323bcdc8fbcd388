/* main calls leaf a thousand times, writes to both output streams, and returns a
 * status. */
#include <stdio.h>

static int leaf(int n)
{
	return n + 1;
}

int main(void)
{
	int n = 0;

	while (n < 1000)
		n = leaf(n);
	printf("%d\n", n);
	fprintf(stderr, "an error\n");
	return 3;
}
