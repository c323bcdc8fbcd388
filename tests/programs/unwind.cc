/*
 * An exception leaves the calls that it passes, the innermost first.
 *
 * stream:
 *	E main
 *	E catcher
 *	E outer
 *	E middle
 *	E inner
 *	X inner
 *	X middle
 *	X outer
 *	E handled
 *	L handled
 *	L catcher
 *	E cleaner
 *	E holder
 *	E _ZN6ObjectC2Ev
 *	L _ZN6ObjectC2Ev
 *	E inner
 *	X inner
 *	E _ZN6ObjectD2Ev
 *	E nested
 *	E inner
 *	X inner
 *	E handled
 *	L handled
 *	L nested
 *	L _ZN6ObjectD2Ev
 *	X holder
 *	E handled
 *	L handled
 *	L cleaner
 *	E rethrown
 *	E rethrower
 *	E inner
 *	X inner
 *	E handled
 *	L handled
 *	X rethrower
 *	E handled
 *	L handled
 *	L rethrown
 *	E often
 *	E inner
 *	X inner
 *	E handled
 *	L handled
 *	E inner
 *	X inner
 *	E handled
 *	L handled
 *	L often
 *	E sized
 *	E wide
 *	E inner
 *	X inner
 *	X wide
 *	E handled
 *	L handled
 *	L sized
 *	E through
 *	E inner
 *	X inner
 *	E handled
 *	L handled
 *	E handled
 *	L handled
 *	L through
 *	L main
 */
#include "truth.h"

#include <alloca.h>

extern "C" {
void handled(void);
void inner(void);
void middle(void);
void outer(void);
void catcher(void);
void nested(void);
void holder(void);
void cleaner(void);
void rethrower(void);
void rethrown(void);
void often(void);
void wide(int size);
void sized(int size);
void through(void);
}

volatile int sink;

APART void handled()
{
	sink++;
}

APART void inner()
{
	sink++;
	throw 1;
}

APART void middle()
{
	inner();
	sink++;
}

APART void outer()
{
	middle();
	sink++;
}

APART void catcher()
{
	try {
		outer();
	} catch (int) {
		handled();
	}
}

APART void nested()
{
	try {
		inner();
	} catch (...) {
		handled();
	}
}

struct Object {
	APART Object();
	APART ~Object();
};

Object::Object()
{
	sink++;
}

/* Throws and catches while another exception passes. */
Object::~Object()
{
	nested();
}

APART void holder()
{
	Object object;

	inner();
}

APART void cleaner()
{
	try {
		holder();
	} catch (int) {
		handled();
	}
}

APART void rethrower()
{
	try {
		inner();
	} catch (int) {
		handled();
		throw;
	}
}

APART void rethrown()
{
	try {
		rethrower();
	} catch (int) {
		handled();
	}
}

APART void often()
{
	for (int i = 0; i < 2; i++) {
		try {
			inner();
		} catch (int) {
			handled();
		}
	}
}

/* The stack pointer is lower than at the entry of the function. */
APART void wide(int size)
{
	char *memory = (char *)alloca(size);

	memory[0] = 1;
	sink += memory[0];
	inner();
	sink++;
}

APART void sized(int size)
{
	char *memory = (char *)alloca(size);

	memory[0] = 1;
	sink += memory[0];
	try {
		wide(3 * size);
	} catch (int) {
		handled();
	}
}

struct Unseen {
	QUIET APART Unseen()
	{
		sink++;
	}
	QUIET ~Unseen()
	{
		handled();
	}
};

/* The function that calls handled() and then goes on unwinding is not instrumented. */
QUIET APART static void unseen()
{
	Unseen one;

	inner();
}

APART void through()
{
	try {
		unseen();
	} catch (int) {
		handled();
	}
}

int main(int count, char **)
{
	catcher();
	cleaner();
	rethrown();
	often();
	sized(100 * count);
	through();
	return 0;
}
