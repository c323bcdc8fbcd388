/*
 * Calls of every kind on four threads, each with a coroutine and one with a
 * handler on a stack of its own, while a fifth switches calls off and on.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define QUIET __attribute__((no_instrument_function))
#define APART __attribute__((noinline))
#define INLINED inline __attribute__((always_inline))

enum { THREADS = 4, TOGGLES = 1000 };

static int done;
static volatile int sink;
static thread_local unsigned long seed;
static ucontext_t outside[THREADS], inside[THREADS];

QUIET static unsigned pick(unsigned count)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(seed >> 40) % count;
}

static INLINED void inlined()
{
	sink = sink + 1;
}

APART void leaf()
{
	sink = sink + 1;
}

APART void walk(int depth);

APART void thrower(int depth)
{
	if (depth <= 0)
		throw 1;
	walk(depth - 1);
	thrower(depth - 1);
}

APART void catcher(int depth)
{
	try {
		thrower(depth % 3);
	} catch (int) {
		leaf();
	}
}

APART void jumper(jmp_buf *buffer, int depth)
{
	if (depth <= 0)
		longjmp(*buffer, 1);
	jumper(buffer, depth - 1);
	leaf();
}

APART void jumps(int depth)
{
	jmp_buf buffer;

	if (!setjmp(buffer))
		jumper(&buffer, depth % 4);
	leaf();
}

APART void large(int depth)
{
	volatile char *room = (volatile char *)alloca(64 + pick(900));

	room[0] = (char)depth;
	inlined();
	if (depth > 0)
		walk(depth - 1);
	sink = sink + room[0];
}

APART void walk(int depth)
{
	if (depth <= 0) {
		leaf();
		return;
	}
	switch (pick(6)) {
	case 0:
		walk(depth - 1);
		walk(depth - 2);
		break;
	case 1:
		catcher(depth);
		break;
	case 2:
		jumps(depth);
		break;
	case 3:
		large(depth);
		break;
	case 4:
		inlined();
		walk(depth - 1);
		break;
	default:
		leaf();
		large(depth - 1);
		walk(depth - 2);
	}
}

APART void handler(int)
{
	leaf();
}

APART void coroutine(int number)
{
	for (int i = 0; i < 3; i++) {
		walk(4);
		swapcontext(&inside[number], &outside[number]);
	}
}

APART void *work(void *argument)
{
	long number = (long)argument;
	char *stack = (char *)malloc(65536);

	seed = (unsigned long)number + 1;
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		walk(9);
		getcontext(&inside[number]);
		inside[number].uc_stack.ss_sp = stack + 3;
		inside[number].uc_stack.ss_size = 65000;
		inside[number].uc_link = &outside[number];
		makecontext(&inside[number], (void (*)())coroutine, 1,
			    (int)number);
		for (int i = 0; i < 4; i++) {
			swapcontext(&outside[number], &inside[number]);
			leaf();
		}
	}
	free(stack);
	return NULL;
}

QUIET static void *toggle(void *unused)
{
	typedef int (*function)();
	function stop = (function)dlsym(RTLD_DEFAULT, "shim_hooks_disable");
	function start = (function)dlsym(RTLD_DEFAULT, "shim_hooks_enable");

	for (int i = 0; i < TOGGLES; i++) {
		if (stop)
			stop();
		if (i % 3 == 0)
			usleep(300);
		if (start)
			start();
		if (i % 5 == 0)
			usleep(500);
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	return unused;
}

QUIET static void handle_timer()
{
	static char memory[65536];
	stack_t stack = {};
	struct sigaction action = {};
	struct itimerval period = { { 0, 700 }, { 0, 700 } };

	stack.ss_sp = memory;
	stack.ss_size = sizeof(memory);
	sigaltstack(&stack, NULL);
	action.sa_handler = handler;
	action.sa_flags = SA_ONSTACK | SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &period, NULL);
}

int main()
{
	struct itimerval off = {};
	pthread_t thread[THREADS], toggler;

	handle_timer();
	pthread_create(&toggler, NULL, toggle, NULL);
	for (long i = 1; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	work(NULL);
	for (int i = 1; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pthread_join(toggler, NULL);
	setitimer(ITIMER_REAL, &off, NULL);
	puts("done");
	return 0;
}
