/*
 * Functions that the compiler splits in two, with the cold part in front of everything
 * else; some of them are never called.
 */
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#define APART __attribute__((noinline))

static volatile int sink;

/* Every path to this function is unlikely. */
APART __attribute__((cold)) static void complain(int number)
{
	sink = number;
}

APART __attribute__((cold, noreturn)) static void refuse(int number)
{
	sink = number;
	throw number;
}

extern "C" APART int cut(int number)
{
	int result = number * 2;

	if (number > 100) {
		complain(number);
		result += sink;
		complain(result);
		sink = result;
	}
	return result + 1;
}

/* Its cold part throws, and cleans up and catches there. */
struct cleaned {
	int number;

	APART ~cleaned()
	{
		sink = number;
	}
};

extern "C" APART int catches(int number)
{
	int result = 0;

	try {
		cleaned one = { number };

		if (number > 100)
			refuse(number);
		result = sink + number;
	} catch (int caught) {
		result = caught;
	} catch (const std::runtime_error &) {
		result = 1;
	}
	return result;
}

extern "C" APART int never(int number)
{
	if (number > 100)
		complain(number);
	return number + sink;
}

int main()
{
	int result = 0;

	for (int i = 1; i < 4; i++)
		result += cut(i * 50) + catches(i * 50);
	if (result < 0)
		never(result);
	std::printf("%d\n", result);
	return 3;
}
