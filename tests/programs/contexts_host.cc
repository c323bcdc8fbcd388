/*
 * Lets each of its contexts call the module of contexts.py.
 */
#include <csignal>
#include <cstdio>
#include <pthread.h>
#include <unistd.h>

#define QUIETLY __attribute__((no_instrument_function))

extern "C" {
__attribute__((visibility("default"))) void (*contexts_step)(const char *place);
}

static int depth;

static void callee(int again)
{
	if (again)
		depth++;
}

static void another(void)
{
	depth--;
}

static void thrower(void)
{
	throw depth;
}

QUIETLY static void on_signal(int)
{
	contexts_step("signal handler");
}

QUIETLY int main()
{
	if (!contexts_step) {
		puts("no module");
		return 1;
	}
	contexts_step("0");
	pthread_setname_np(pthread_self(), "renamed");
	contexts_step("1");
	try {
		thrower();
	} catch (int) {
	}
	contexts_step("2");
	callee(1);
	contexts_step("3");
	callee(2);
	contexts_step("4");
	another();
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	contexts_step("program");
	contexts_step("detach");
	usleep(200000);
	puts("done");
}
