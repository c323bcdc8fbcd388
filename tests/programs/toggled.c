/*
 * Switches the recording of its own calls off and on, in one of the ways below.
 * Without shim it only does its work, which has the same results.
 *
 * usage: toggled phases|threads|across|beside|inlined|nested|recursive|deeper|
 *                waiting|fork|forks|parent|files|plugin [FILE]
 */
#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Uses dlsym, because weak references of programs at a fixed address are never
 * bound. */
QUIET static void switch_calls(const char *name)
{
	int (*function)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, name);

	if (function && function() != 0)
		abort();
}

QUIET static void stop(void)
{
	switch_calls("shim_hooks_disable");
}

QUIET static void start(void)
{
	switch_calls("shim_hooks_enable");
}

/* Ends in a jump to the leave hook. */
APART void leaf(void)
{
	COUNTED;
}

APART void early(void)
{
	COUNTED;
	leaf();
}

APART void late(void)
{
	COUNTED;
	leaf();
}

/* Never recorded, so not counted. */
APART unsigned unseen(unsigned value)
{
	__asm__ volatile("" : "+r"(value));
	return value < 2 ? value : unseen(value - 1) + unseen(value - 2);
}

static unsigned times(unsigned count, void (*function)(void)) QUIET;

static unsigned times(unsigned count, void (*function)(void))
{
	for (unsigned i = 0; i < count; i++)
		function();
	return count;
}

/* --- one after the other --- */

QUIET static void phases(void)
{
	times(10, early);
	for (int i = 0; i < 3; i++) {
		stop();
		stop();
		printf("%u\n", unseen(15));
		start();
		start();
		times(10, late);
	}
}

/* --- while threads run --- */

enum { THREADS = 4, TOGGLES = 2000 };

static pthread_barrier_t barrier;
static int done;
static unsigned long sums[THREADS];

APART unsigned long mix(unsigned long value)
{
	__asm__ volatile("" : "+r"(value));
	return value * 6364136223846793005ul + 1442695040888963407ul;
}

APART unsigned long fold(unsigned long sum, unsigned long value)
{
	unsigned long a = mix(sum ^ value), b = mix(a + value);

	__asm__ volatile("" : "+r"(a));
	return a ^ b >> 7;
}

/* Runs as often as needed, and a number of rounds whose result is known. */
QUIET static void *work(void *argument)
{
	unsigned long *sum = argument;
	unsigned long wanted = 0;

	pthread_barrier_wait(&barrier);
	times(10, early);
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < 1000; i++)
		wanted = fold(wanted, i);
	do {
		*sum = 0;
		for (unsigned i = 0; i < 1000; i++)
			*sum = fold(*sum, i);
		if (*sum != wanted)
			abort();
	} while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE));
	pthread_barrier_wait(&barrier);
	times(10, late);
	return NULL;
}

QUIET static void threads(void)
{
	pthread_t thread[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, &sums[i]);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < TOGGLES; i++) {
		stop();
		start();
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		printf("%lx\n", sums[i]);
	}
}

/* --- calls that are open during a switch --- */

APART void stops_inside(void)
{
	COUNTED;
	stop();
}

APART void starts_inside(void)
{
	start();
	times(10, late);
}

/* Its leave is not recorded, and the next call uses the same stack address. */
QUIET static void across(void)
{
	stops_inside();
	start();
	times(10, late);
}

/* The same, called by the same function. */
QUIET static void beside(void)
{
	stops_inside();
	start();
	for (int i = 0; i < 10; i++)
		late();
}

static INLINED void inlined(void)
{
	COUNTED;
	leaf();
}

/* A function that is inlined at the place of its caller, which goes on. */
APART void hosts(void)
{
	COUNTED;
	stop();
	unseen(5);
	start();
	inlined();
	inlined();
	late();
}

/* Its enter is not recorded. */
QUIET static void nested(void)
{
	times(10, early);
	stop();
	starts_inside();
	times(10, early);
}

/* The inner call's enter is not recorded, and its leave could be the outer call's. */
APART void descend(int depth)
{
	if (depth == 0) {
		start();
		return;
	}
	COUNTED;
	stop();
	descend(depth - 1);
	times(10, late);
}

/* The same, further down; some of the frames have to be large. */
APART unsigned deeper(unsigned depth)
{
	volatile char room[depth % 3 == 0 ? 700 : 16];

	room[0] = (char)depth;
	if (depth == 5)
		COUNTED;
	if (depth == 5)
		stop();
	if (depth > 0)
		deeper(depth - 1);
	else
		start();
	if (depth == 5)
		times(10, late);
	return (unsigned)room[0];
}

/* The calls of another thread are open and end meanwhile.  That thread cannot be
 * notified, and detects it by itself. */
APART void waits_inside(void)
{
	COUNTED;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
}

QUIET static void *wait_and_go_on(void *unused)
{
	waits_inside();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 10; i++)
		late();
	return unused;
}

QUIET static void waiting(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, wait_and_go_on, NULL);
	pthread_barrier_wait(&barrier);
	stop();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	start();
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
}

/* --- other processes and objects --- */

QUIET static void forked(void)
{
	pid_t child;

	times(10, early);
	stop();
	unseen(10);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		unseen(10);
		start();
		times(5, late);
		stop();
		unseen(10);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	unseen(10);
	start();
	times(10, late);
}

QUIET static void *toggle(void *unused)
{
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		stop();
		start();
	}
	return unused;
}

/* Forks in the middle of it. */
QUIET static void forks(void)
{
	pthread_t thread;

	early();
	pthread_create(&thread, NULL, toggle, NULL);
	for (int i = 0; i < 80; i++) {
		pid_t child = fork();

		if (child == 0) {
			start();
			times(10, late);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

/* The parent has left this call long before the child does. */
APART pid_t forker(void)
{
	pid_t child;

	leaf();
	child = fork();
	if (child == 0)
		usleep(20000);
	leaf();
	return child;
}

APART void parent(void)
{
	pid_t child;

	stop();
	unseen(10);
	start();
	child = forker();
	leaf();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
}

/* Without descriptors, shim can open neither the code nor the memory map. */
QUIET static void files(void)
{
	struct rlimit limit = { 0, 0 };

	times(10, early);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &limit);
	stop();
	unseen(10);
	start();
	times(10, late);
}

QUIET static void use_plugin(const char *file)
{
	for (int i = 0; i < 4; i++) {
		void *plugin = dlopen(file, RTLD_NOW);
		int (*plugin_work)(int) =
			(int (*)(int))dlsym(plugin, "work");

		if (i == 1 || i == 2)
			stop();
		printf("%d\n", plugin_work(i));
		if (i == 2)
			dlclose(plugin);
		start();
		printf("%d\n", plugin_work == NULL);
		if (i != 2)
			dlclose(plugin);
	}
}

QUIET int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (strcmp(how, "phases") == 0)
		phases();
	else if (strcmp(how, "threads") == 0)
		threads();
	else if (strcmp(how, "across") == 0)
		across();
	else if (strcmp(how, "beside") == 0)
		beside();
	else if (strcmp(how, "inlined") == 0)
		hosts();
	else if (strcmp(how, "deeper") == 0)
		printf("%u\n", deeper(5));
	else if (strcmp(how, "waiting") == 0)
		waiting();
	else if (strcmp(how, "nested") == 0)
		nested();
	else if (strcmp(how, "recursive") == 0)
		descend(1);
	else if (strcmp(how, "fork") == 0)
		forked();
	else if (strcmp(how, "forks") == 0)
		forks();
	else if (strcmp(how, "parent") == 0)
		parent();
	else if (strcmp(how, "files") == 0)
		files();
	else if (strcmp(how, "plugin") == 0 && argc > 2)
		use_plugin(argv[2]);
	else
		return 2;
	print_counts();
	return 0;
}
