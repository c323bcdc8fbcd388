/*
 * The times are known: burn_ms() uses processor time in its caller, and no other
 * function uses a notable amount.
 *
 *     paths     walks a million paths, for which the hooks need much of the time;
 *               then burns 400 ms
 *     jumps     burns 300 ms in a function that ends in a longjmp
 *     allocates burns 400 ms, allocates, burns as much again
 *     ends      after many short calls, one that burns 600 ms and exits
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))
#define FUNCTION __attribute__((noinline))

static jmp_buf caught;
static volatile unsigned result;

static PLAIN double processor_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static PLAIN FUNCTION void burn_ms(double ms)
{
	double end = ms > 0 ? processor_ms() + ms : 0;

	while (ms > 0 && processor_ms() < end)
		result++;
}

static FUNCTION unsigned walk_left(unsigned depth, unsigned value);

static FUNCTION unsigned walk_right(unsigned depth, unsigned value)
{
	return depth == 0 ? value :
	       walk_left(depth - 1, value + 1) ^ walk_right(depth - 1, value);
}

static FUNCTION unsigned walk_left(unsigned depth, unsigned value)
{
	return depth == 0 ? value :
	       walk_right(depth - 1, value + 2) ^ walk_left(depth - 1, value);
}

static FUNCTION void spin(void)
{
	burn_ms(400);
}

static void paths(void)
{
	for (int i = 0; i < 4; i++)
		result += walk_left(18, result);
	spin();
}

static FUNCTION void thrower(int is_short)
{
	burn_ms(is_short ? 0 : 300);
	longjmp(caught, 1);
}

/* Called so often that its calls are no longer timed exactly. */
static FUNCTION void catcher(int is_short)
{
	if (setjmp(caught) == 0)
		thrower(is_short);
}

static void jumps(void)
{
	for (int i = 0; i < 20000; i++)
		catcher(1);
	catcher(0);
}

static FUNCTION void allocator(int is_short)
{
	void *volatile block;

	burn_ms(is_short ? 0 : 400);
	result += walk_right(0, 1);
	block = is_short ? NULL : malloc(1000);
	free(block);
	burn_ms(is_short ? 0 : 400);
}

static void allocates(void)
{
	for (int i = 0; i < 20000; i++)
		allocator(1);
	allocator(0);
}

static FUNCTION void last_one(int is_short)
{
	burn_ms(is_short ? 0 : 600);
	if (!is_short)
		_exit(0);
}

static void ends(void)
{
	for (int i = 0; i < 20000; i++)
		last_one(1);
	last_one(0);
}

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "paths", paths },
		      { "jumps", jumps },
		      { "allocates", allocates },
		      { "ends", ends } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name))
			cases[i].run();
	return 0;
}
