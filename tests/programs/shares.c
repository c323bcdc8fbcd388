/* Computes in known shares: three uses 3, one 1, and library (in another object) 1. */
#define _GNU_SOURCE
#include "shares.h"

#define APART __attribute__((noinline, noclone))

void library(void);

volatile unsigned long sink;

#ifdef ALONE
#define ROUNDS 10
void library(void)
{
}
#else
#define ROUNDS 50
#endif

#ifdef CALLS
APART void called(void)
{
	sink++;
}
#endif

APART static void three(void)
{
	COMPUTE(12);
}

APART static void one(void)
{
	COMPUTE(4);
}

int main(void)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		three();
		one();
		library();
	}
	return 0;
}
