/*
 * An exception without a handler: the terminate handler sees the stack of the throwing
 * function.  (Run by events.py.)
 */
#include "truth.h"

#include <exception>
#include <execinfo.h>
#include <stdlib.h>

extern "C" {
void thrower(void);
void outer(void);
}

static int count_frames()
{
	void *frames[100];

	return backtrace(frames, 100);
}

static void on_terminate()
{
	printf("%d frames\n", count_frames());
	fflush(stdout);
	abort();
}

APART void thrower()
{
	throw 1;
}

APART void outer()
{
	thrower();
	print_text("no\n");
}

int main()
{
	std::set_terminate(on_terminate);
	printf("%d here\n", count_frames());
	outer();
	return 0;
}
