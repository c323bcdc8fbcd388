/*
 * injected - produces some of every kind of recorded data: many paths, threads, memory,
 * contention, a loaded library, a handler, a jump, children, another program.
 *
 * Its output is always the same.  It counts the calls of its own hooks.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define THREADS 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static jmp_buf before;
static volatile int sink;

static APART void right(int depth);

static APART void left(int depth)
{
	COUNTED;
	if (depth > 0) {
		left(depth - 1);
		right(depth - 1);
	}
}

static APART void right(int depth)
{
	COUNTED;
	if (depth > 0) {
		left(depth - 1);
		right(depth - 1);
	}
	sink++;
}

static APART void allocate(void)
{
	void *memory[64];

	COUNTED;
	for (int i = 0; i < 64; i++)
		memory[i] = malloc(16 + (size_t)i * 100);
	for (int i = 0; i < 64; i += 2)
		memory[i] = realloc(memory[i], 5000);
	for (int i = 0; i < 60; i++)
		free(memory[i]);
	memory[0] = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	munmap(memory[0], 65536);
}

static APART void contend(void)
{
	COUNTED;
	for (int i = 0; i < 50; i++) {
		pthread_mutex_lock(&mutex);
		left(2);
		pthread_mutex_unlock(&mutex);
	}
}

static APART void *thread(void *depth)
{
	COUNTED;
	left((int)(long)depth);
	allocate();
	contend();
	return NULL;
}

static APART void run_threads(void)
{
	pthread_t threads[THREADS];

	COUNTED;
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, thread, (void *)(i + 5));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static APART void on_signal(int signal)
{
	(void)signal;
	COUNTED;
	left(3);
}

static APART void jump(int depth)
{
	COUNTED;
	if (depth == 0)
		longjmp(before, 1);
	jump(depth - 1);
}

static APART void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*twice)(int);

	COUNTED;
	if (!library)
		return;
	twice = (int (*)(int))dlsym(library, "alpha_twice");
	sink += twice ? twice(2) : 0;
	dlclose(library);
}

/* The child forgets its parent's counts: its own calls are what its recording has. */
QUIET static void forget_counts(void)
{
	for (struct count *count = __start_counts; count < __stop_counts;
	     count++)
		count->calls = 0;
}

static APART void be_child(void)
{
	COUNTED;
	left(6);
	allocate();
	print_counts();
	_exit(7);
}

static APART void make_child(void)
{
	int status = 0;
	pid_t child;

	COUNTED;
	child = fork();
	if (child == 0) {
		forget_counts();
		be_child();
	}
	waitpid(child, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
}

static APART void compute(void)
{
	COUNTED;
	for (int i = 0; i < 5000000; i++)
		sink += i;
}

int main(int words, char **word)
{
	COUNTED;
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGUSR1, on_signal);
	left(11);
	allocate();
	raise(SIGUSR1);
	if (setjmp(before) == 0)
		jump(5);
	if (words > 1)
		load(word[1]);
	run_threads();
	compute();
	make_child();
	printf("shell %d\n", WEXITSTATUS(system("exit 4")));
	print_counts();
	return 5;
}
