/* Loaded by held.c: its constructor, its destructor and a resolver run with the
 * loader's lock held. */
#include <stdio.h>

__attribute__((noinline)) static int in_loader(int n)
{
	return n + 1;
}

static volatile int sink;

__attribute__((constructor, no_instrument_function)) static void begin(void)
{
	sink = in_loader(1);
}

__attribute__((destructor, no_instrument_function)) static void end(void)
{
	sink = in_loader(2);
}

static int chosen(int n)
{
	return n;
}

typedef int function(int);

/* This function is instrumented itself. */
static function *choose(void)
{
	return chosen;
}

int chosen_when_loaded(int n) __attribute__((ifunc("choose")));
