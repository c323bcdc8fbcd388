/*
 * A rank of a parallel job: calls more() as often as the first argument says, or as
 * often as its rank plus one.  The second argument is its status.
 */
#include "truth.h"

#include <stdlib.h>
#include <string.h>

static APART void work(void)
{
}

static APART void more(void)
{
	work();
}

int main(int argc, char **argv)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	long count = argc > 1 ? atol(argv[1]) : rank ? atol(rank) + 1 : 1;

	for (long i = 0; i < count; i++)
		more();
	return argc > 2 ? atoi(argv[2]) : 0;
}
