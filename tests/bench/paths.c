/*
 * A program with many call paths: 12 functions call each other to a depth of the first
 * argument (4: 22,620 paths), as often as the second one says.
 */
#include <stdlib.h>

#define APART __attribute__((noinline))

static volatile unsigned long sum;

static inline __attribute__((no_instrument_function)) void work(void)
{
	int i;

	for (i = 0; i < 1000; i++)
		sum++;
}

void call_all(int depth);

#define FUNCTION(n) \
	APART void function_##n(int depth) \
	{ \
		work(); \
		if (depth > 1) \
			call_all(depth - 1); \
	} \
	APART void function_##n(int depth);

void function_0(int), function_1(int), function_2(int), function_3(int);
void function_4(int), function_5(int), function_6(int), function_7(int);
void function_8(int), function_9(int), function_10(int), function_11(int);

FUNCTION(0)
FUNCTION(1)
FUNCTION(2)
FUNCTION(3)
FUNCTION(4)
FUNCTION(5)
FUNCTION(6)
FUNCTION(7)
FUNCTION(8)
FUNCTION(9)
FUNCTION(10)
FUNCTION(11)

__attribute__((no_instrument_function)) void call_all(int depth)
{
	static void (*const all[])(int) = {
		function_0, function_1, function_2,  function_3,
		function_4, function_5, function_6,  function_7,
		function_8, function_9, function_10, function_11,
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		all[i](depth);
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 4;
	int count = argc > 2 ? atoi(argv[2]) : 1;

	while (count-- > 0)
		call_all(depth);
	return 0;
}
