/*
 * The caller keeps values in all registers that it knows the function to leave alone:
 * interprocedural register allocation, -mllvm -enable-ipra of clang.  gcc does it at -O2, but
 * not if it marks functions; behind this line it does it again.
 */
#pragma GCC optimize("no-ipa-pure-const")

#include <stdio.h>
#include <stdlib.h>

#define EACH(DO) \
	DO(0) \
	DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define LOAD(i) \
	long v##i = p[i]; \
	double d##i = d[i];
/* Not before the call. */
#define KEEP(i)	      __asm__ volatile("" : "+r"(v##i), "+x"(d##i));
#define ADD_LONG(i)   +v##i
#define ADD_DOUBLE(i) +d##i

volatile long work;

__attribute__((noinline)) static void leaf(void)
{
	work = 1;
}

__attribute__((noinline)) static long knows(const long *p, const double *d)
{
	EACH(LOAD)
	leaf();
	EACH(KEEP)
	return (0 EACH(ADD_LONG)) * (long)(0 EACH(ADD_DOUBLE));
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1000;
	long p[12], sum = 0;
	double d[12];

	for (int n = 0; n < count; n++) {
		for (int i = 0; i < 12; i++)
			p[i] = d[i] = n % 1000 * i;
		sum += knows(p, d);
	}
	printf("%ld\n", sum);
}
