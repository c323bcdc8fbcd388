/*
 * Functions whose addresses are entries of the linkage table: functions that a resolver
 * chooses at the start, and, without position-independent code, functions of a library.
 */
#include "truth.h"

#if defined(__x86_64__) && !defined(__clang__)
#define CHOSEN __attribute__((target_clones("avx2", "default")))
#else
#define CHOSEN
#endif

int library_function(int value);

CHOSEN APART int chosen(int value)
{
	COUNTED;
	return value + 1;
}

CHOSEN static APART int chosen_here(int value)
{
	COUNTED;
	return value + 2;
}

int main(void)
{
	int (*volatile taken)(int) = library_function;

	COUNTED;
	print_text(taken(chosen(1)) + library_function(chosen_here(2)) == 0 ?
			   "zero\n" : "not zero\n");
	print_counts();
	return 0;
}
