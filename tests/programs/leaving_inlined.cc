/*
 * Inlined functions are left like others, also while an exception passes.
 *
 * A limit: clang calls no leave hook during unwinding, so functions inlined into the
 * catching function end when shim notices it.
 *
 * stream:
 *	E main
 *	E plain
 *	E middle
 *	E leaf
 *	L leaf
 *	L middle
 *	L plain
 *	E passes
 *	E thrower
 *	E inner
 *	E bottom
 *	X bottom
 *	X inner
 *	X thrower
 *	E leaf
 *	L leaf
 *	L passes
 *	L main
 * stream (clang):
 *	E main
 *	E plain
 *	E middle
 *	E leaf
 *	L leaf
 *	L middle
 *	L plain
 *	E passes
 *	E thrower
 *	E inner
 *	E bottom
 *	X bottom
 *	E leaf
 *	L leaf
 *	X inner
 *	X thrower
 *	L passes
 *	L main
 */
#include "truth.h"

extern "C" {
void leaf(void);
void bottom(void);
void plain(void);
void passes(void);
}

volatile int sink;

APART void leaf()
{
	sink++;
}

APART void bottom()
{
	sink++;
	throw 1;
}

extern "C" INLINED void middle()
{
	leaf();
	sink++;
}

extern "C" INLINED void inner()
{
	bottom();
	sink++;
}

extern "C" INLINED void thrower()
{
	inner();
	sink++;
}

APART void plain()
{
	middle();
	sink++;
}

APART void passes()
{
	try {
		thrower();
	} catch (int) {
		leaf();
	}
}

int main()
{
	plain();
	passes();
	return 0;
}
