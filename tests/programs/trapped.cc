/*
 * Code whose line begins with an instruction that, behind a trap in place of its first
 * byte, looks like a call of an address far away.
 */
#include <cstdio>
#include <cstring>

static int value = 1;

static inline __attribute__((always_inline)) int inner(int n)
{
	return n + value;
}

__attribute__((noinline)) static int outer(int n)
{
	int sum = inner(n);

	__asm__ volatile("mov $0x7fffffe8, %%eax\n\tnop" ::: "eax");
	return sum;
}

__attribute__((noinline)) static const void *argument(const char *text, size_t size)
{
	__asm__ volatile("mov $0x7fffffe8, %%eax\n\tnop" ::: "eax");
	return memchr(text, 'x', size);
}

int main(void)
{
	int sum = 1;
	const void *found = argument("text", 4);

	/* shim asks how functions end only after one was caught. */
	try {
		throw sum;
	} catch (int number) {
		sum += outer(number);
	}
	printf("%d %s\n", sum, found ? (const char *)found : "none");
	return sum;
}
