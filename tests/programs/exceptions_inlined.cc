/*
 * An exception ends calls that were inlined into the catching function.
 *
 * tree:
 *	main 1
 *	main;leaf 1
 *	main;catcher 10
 *	main;catcher;one 10
 *	main;catcher;one;two 10
 *	main;catcher;one;two;three 10
 *	main;catcher;leaf 10
 *	main;loop 1
 *	main;loop;one 10
 *	main;loop;one;two 10
 *	main;loop;one;two;three 10
 *	main;loop;leaf 10
 *
 * A limit: clang calls no leave hook while an exception passes, and of calls
 * inlined into the one that goes on nothing tells from the stack which of them
 * still run.  They are taken for open until that one returns.
 *
 * tree (clang -O0):
 *	main 1
 *	main;leaf 1
 *	main;catcher 10
 *	main;catcher;one 10
 *	main;catcher;one;two 10
 *	main;catcher;one;two;three 10
 *	main;loop 1
 *	*
 *
 * tree (clang -O2):
 *	main 1
 *	main;leaf 1
 *	main;catcher 10
 *	main;catcher;one 10
 *	main;catcher;one;two 10
 *	main;catcher;one;two;three 10
 *	main;loop 1
 *	*
 */
#include "truth.h"

extern "C" {
void leaf(void);
void three(void);
INLINED void two(void);
INLINED void one(void);
void catcher(void);
void loop(void);
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

INLINED void two()
{
	three();
}

INLINED void one()
{
	two();
}

APART void catcher()
{
	COUNTED;
	try {
		one();
	} catch (int) {
		leaf();
	}
}

APART void loop()
{
	COUNTED;
	for (int i = 0; i < 10; i++)
		try {
			one();
		} catch (int) {
			leaf();
		}
}

int main()
{
	COUNTED;
	for (int i = 0; i < 10; i++)
		catcher();
	loop();
	leaf();
	print_counts();
	return 0;
}
