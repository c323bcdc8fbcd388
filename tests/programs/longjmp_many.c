/*
 * Any number of jump buffers may be in use.
 *
 * tree:
 *	main 1
 *	main;deep 1
 *	main;leaf 1
 *	main;deep;deep 1
 *	main;deep;deep;thrower 1
 *	main;deep;deep;deep 1
 *	main;deep;deep;deep;thrower 1
 *	main;deep;deep;deep;deep 1
 *	*
 */
#include "truth.h"

#include <setjmp.h>

#define FRAMES 300

static jmp_buf buffers[FRAMES];

static void leaf(void)
{
	COUNTED;
}

static APART void thrower(int n)
{
	COUNTED;
	longjmp(buffers[n], 1);
}

/* Of three frames, the innermost returns; the next one jumps to itself and then to its
 * caller, which goes on normally. */
static APART void deep(int n)
{
	COUNTED;
	if (setjmp(buffers[n]) == 0) {
		if (n + 1 < FRAMES)
			deep(n + 1);
		thrower(n);
	}
	if (n % 3 == 1)
		longjmp(buffers[n - 1], 1);
}

int main(void)
{
	COUNTED;
	deep(0);
	leaf();
	print_counts();
	return 0;
}
