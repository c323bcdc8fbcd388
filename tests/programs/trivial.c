/*
 * trivial CALLS LENGTH - calls a function CALLS times that spins for LENGTH
 */
#include <stdlib.h>

static volatile int sum;

__attribute__((noinline)) static void spin(int length)
{
	for (int i = 0; i < length; i++)
		sum += i;
}

int main(int argc, char **argv)
{
	int calls = argc > 1 ? atoi(argv[1]) : 0;
	int length = argc > 2 ? atoi(argv[2]) : 0;

	for (int i = 0; i < calls; i++)
		spin(length);
	return 0;
}
