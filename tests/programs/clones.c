/* The compiler makes a copy of a function for each kind of processor, and a resolver
 * that chooses one. */
#include <stdio.h>

__attribute__((target_clones("avx2", "default"))) int sum(int a, int b)
{
	return a + b;
}

int main(void)
{
	printf("%d\n", sum(1, 2));
	return 3;
}
