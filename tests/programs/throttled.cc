/*
 * Hot functions that a budget switches off, among rare ones that stay: with threads,
 * exceptions, longjmp, coroutines, signal handlers and a fork.  Each process says how
 * often each function was called, for tests/whole/budget.py.
 */
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define NAMES(X) \
	X(leaf) \
	X(middle) \
	X(thrower) X(catcher) X(jumper) X(lander) X(handler) X(step) \
		X(coroutine) X(rare) X(inner) X(work) X(child)

#define COUNTER(name) static unsigned long count_##name;
NAMES(COUNTER)
#define CALLED(name) __atomic_add_fetch(&count_##name, 1, __ATOMIC_RELAXED)
#define NOINLINE     extern "C" __attribute__((noinline))
#define PLAIN	     __attribute__((no_instrument_function))

static volatile int sink;

NOINLINE int leaf(int x)
{
	CALLED(leaf);
	return x * 3 + 1;
}

/* Stays on, and is called through functions that do not. */
NOINLINE int inner(int x)
{
	CALLED(inner);
	return leaf(x);
}

NOINLINE int middle(int x)
{
	int sum = 0;

	CALLED(middle);
	for (int i = 0; i < 20; i++)
		sum += leaf(x + i);
	if (x % 1000 == 0)
		sum += inner(x);
	return sum;
}

NOINLINE int thrower(int x)
{
	CALLED(thrower);
	if (x % 50 == 0)
		throw x;
	return leaf(x);
}

NOINLINE int catcher(int x)
{
	CALLED(catcher);
	try {
		return thrower(x) + thrower(x + 1);
	} catch (int) {
		return x % 2000 == 0 ? inner(x) : 0;
	}
}

static __thread jmp_buf buffer;

NOINLINE void jumper(int x)
{
	CALLED(jumper);
	sink = leaf(x);
	longjmp(buffer, 1);
}

NOINLINE int lander(int x)
{
	CALLED(lander);
	if (setjmp(buffer) == 0)
		jumper(x);
	return x % 1000 == 0 ? inner(x) : 0;
}

NOINLINE int rare(int x)
{
	int sum = 0;

	CALLED(rare);
	for (int i = 0; i < 1000; i++) {
		sum += middle(x + i) + catcher(x + i);
		if (i % 10 == 0)
			sum += lander(x + i);
	}
	return sum;
}

NOINLINE void handler(int)
{
	CALLED(handler);
	sink = leaf(1);
	sink = inner(2);
}

static ucontext_t caller, callee;

NOINLINE int step(int x)
{
	CALLED(step);
	return leaf(x) + 1;
}

NOINLINE void coroutine()
{
	CALLED(coroutine);
	for (int x = 0;; x++) {
		for (int i = 0; i < 10000; i++)
			sink = step(x);
		sink = inner(x);
		swapcontext(&callee, &caller);
	}
}

NOINLINE void *work(void *rounds)
{
	CALLED(work);
	for (long i = 0; i < (long)rounds; i++)
		sink = rare((int)i);
	return nullptr;
}

NOINLINE void child(long rounds)
{
	CALLED(child);
	work((void *)rounds);
}

PLAIN static void tell()
{
	char text[2000];
	int n = 0;

#define TELL(name) \
	n += snprintf(text + n, sizeof(text) - (size_t)n, \
		      "process %d calls %s %lu\n", (int)getpid(), #name, \
		      count_##name);
	NAMES(TELL)
	if (write(1, text, (size_t)n) != n)
		_exit(1);
}

static void forget()
{
#define FORGET(name) count_##name = 0;
	NAMES(FORGET)
}

PLAIN static void begin_storm()
{
	struct itimerval often = { { 0, 500 }, { 0, 500 } };
	struct sigaction action = {};

	action.sa_handler = handler;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, nullptr);
	setitimer(ITIMER_REAL, &often, nullptr);
}

PLAIN static void end_storm()
{
	struct itimerval never = {};

	setitimer(ITIMER_REAL, &never, nullptr);
	signal(SIGALRM, SIG_IGN);
}

static void yield_often(long rounds)
{
	static char stack[256 << 10];

	getcontext(&callee);
	callee.uc_stack.ss_sp = stack;
	callee.uc_stack.ss_size = sizeof(stack);
	makecontext(&callee, coroutine, 0);
	for (long i = 0; i < rounds; i++) {
		swapcontext(&caller, &callee);
		sink = leaf(1);
	}
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 100;
	long threads = argc > 2 ? atol(argv[2]) : 2;
	pthread_t thread[8];

	begin_storm();
	for (long i = 0; i < threads; i++)
		pthread_create(&thread[i], nullptr, work, (void *)rounds);
	work((void *)rounds);
	for (long i = 0; i < threads; i++)
		pthread_join(thread[i], nullptr);
	yield_often(rounds);
	end_storm();
	if (argc > 3) {
		tell();
		kill(getpid(), SIGKILL);
	}
	if (fork() == 0) {
		forget();
		child(rounds);
		tell();
		_exit(0);
	}
	wait(nullptr);
	tell();
	return 0;
}
