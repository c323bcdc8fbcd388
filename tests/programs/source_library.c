/*
 * A library that source_opens opens.
 */
int library_leaf(int n);
int library_sum(int n);

__attribute__((noinline)) int library_leaf(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

int library_sum(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += library_leaf(i);
	return sum;
}
