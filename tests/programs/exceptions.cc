/*
 * An exception ends the calls that it passes.
 *
 * tree:
 *	main 1
 *	main;leaf 1
 *	main;far_away 1000
 *	main;far_away;one 1000
 *	main;far_away;one;two 1000
 *	main;far_away;one;two;three 1000
 *	main;far_away;leaf 1000
 *	main;middle 10
 *	main;middle;rethrower 10
 *	main;middle;rethrower;one 10
 *	main;middle;rethrower;one;two 10
 *	main;middle;rethrower;one;two;three 10
 *	main;middle;rethrower;leaf 10
 *	main;middle;leaf 10
 *	main;objects 10
 *	main;objects;_ZN6ObjectC2Ei 20
 *	main;objects;holder 10
 *	main;objects;holder;_ZN6ObjectC2Ei 10
 *	main;objects;holder;three 10
 *	main;objects;holder;_ZN6ObjectD2Ev 10
 *	main;objects;_ZN6ObjectD2Ev 20
 *	main;objects;leaf 10
 *	main;half 10
 *	main;half;_ZN4HalfC2Ev 10
 *	main;half;_ZN4HalfC2Ev;_ZN6ObjectC2Ei 10
 *	main;half;_ZN4HalfC2Ev;three 10
 *	main;half;_ZN4HalfC2Ev;_ZN6ObjectD2Ev 10
 *	main;half;leaf 10
 *	main;nested 10
 *	main;nested;three 10
 *	main;nested;one 10
 *	main;nested;one;two 10
 *	main;nested;one;two;three 10
 *	main;nested;leaf 20
 *	main;through_c 10
 *	main;through_c;compare 10
 *	main;through_c;compare;three 10
 *	main;through_c;leaf 10
 */
#include "truth.h"

#include <stdlib.h>

extern "C" {
void leaf(void);
void three(void);
void two(void);
void one(void);
void far_away(void);
void rethrower(void);
void middle(void);
void holder(void);
void objects(void);
void half(void);
void nested(void);
void through_c(void);
int compare(const void *x, const void *y);
}

struct Object {
	int number;
	APART explicit Object(int number);
	APART ~Object();
};

struct Half {
	Object object;
	APART Half();
};

Object::Object(int n) : number(n)
{
}

Object::~Object()
{
	number = 0;
}

Half::Half() : object(1)
{
	three();
}

APART void leaf()
{
	COUNTED;
}

APART void three()
{
	COUNTED;
	throw 3;
}

APART void two()
{
	COUNTED;
	three();
}

APART void one()
{
	COUNTED;
	two();
}

APART void far_away()
{
	COUNTED;
	try {
		one();
	} catch (int) {
		leaf();
	}
}

APART void rethrower()
{
	COUNTED;
	try {
		one();
	} catch (...) {
		leaf();
		throw;
	}
}

APART void middle()
{
	COUNTED;
	try {
		rethrower();
	} catch (int) {
		leaf();
	}
}

APART void holder()
{
	COUNTED;
	Object object(1);
	three();
}

APART void objects()
{
	COUNTED;
	try {
		Object one(1), two(2);
		holder();
	} catch (int) {
		leaf();
	}
}

APART void half()
{
	COUNTED;
	try {
		Half half;
	} catch (int) {
		leaf();
	}
}

/* Throws and catches while another exception is being handled. */
APART void nested()
{
	COUNTED;
	try {
		three();
	} catch (int) {
		try {
			one();
		} catch (int) {
			leaf();
		}
		leaf();
	}
}

APART int compare(const void *, const void *)
{
	COUNTED;
	three();
	return 0;
}

/* qsort has unwind tables and no personality. */
APART void through_c()
{
	int numbers[2] = { 2, 1 };

	COUNTED;
	try {
		qsort(numbers, 2, sizeof(*numbers), compare);
	} catch (int) {
		leaf();
	}
}

int main()
{
	COUNTED;
	for (int i = 0; i < 1000; i++)
		far_away();
	for (int i = 0; i < 10; i++) {
		middle();
		objects();
		half();
		nested();
		through_c();
	}
	leaf();
	print_counts();
	return 0;
}
