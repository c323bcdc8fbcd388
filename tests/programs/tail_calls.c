/*
 * A tail call is no return: the caller is gone before the callee begins.
 *
 * only: clang
 * stream:
 *	E main
 *	E tail
 *	T tail leaf
 *	E leaf
 *	L leaf
 *	E several
 *	T several leaf
 *	E leaf
 *	L leaf
 *	E several
 *	T several tail
 *	E tail
 *	T tail leaf
 *	E leaf
 *	L leaf
 *	E through
 *	T through 0
 *	E leaf
 *	L leaf
 *	E guarded
 *	T guarded leaf
 *	E leaf
 *	L leaf
 *	E ordinary
 *	E leaf
 *	L leaf
 *	L ordinary
 *	L main
 */
#include "truth.h"

#define TAIL __attribute__((musttail))

int leaf(int n);
int tail(int n);
int several(int n);
int through(int n);
int guarded(int n);
int ordinary(int n);

volatile int sink;
int (*volatile pointer)(int n) = leaf;

APART int leaf(int n)
{
	return n + sink;
}

APART int tail(int n)
{
	sink++;
	TAIL return leaf(n + 1);
}

/* The same leave hook may serve two tail calls, and a return as well. */
APART int several(int n)
{
	if (n == 1)
		TAIL return leaf(n);
	if (n == 2)
		TAIL return tail(n);
	return n;
}

APART int through(int n)
{
	TAIL return pointer(n);
}

APART __attribute__((stack_protect)) int guarded(int n)
{
	char text[40];

	text[n] = (char)n;
	sink += text[n];
	TAIL return leaf(n);
}

APART int ordinary(int n)
{
	return leaf(n);
}

int main(void)
{
	int n = tail(1) + several(1) + several(2) + through(1) + guarded(1);

	return ordinary(n) * 0;
}
