/*
 * "closed_inside LIBRARY": threads are in functions of a library that end with jumps to a
 * function of the program, which waits until the main thread has closed the library and
 * mapped other memory where its parts and what shim had near them may have been.
 * With -DLIBRARY it is the library.
 */
#ifdef LIBRARY

int pass_on(int (*function)(int), int n);
int pass_deeper(int (*function)(int), int n);

__attribute__((noinline)) int pass_on(int (*function)(int), int n)
{
	return function(n);
}

int pass_deeper(int (*function)(int), int n)
{
	return pass_on(function, n + 1);
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>

#define ROUNDS	20
#define THREADS 4

typedef int passer(int (*function)(int), int n);

static passer *deeper;
static sem_t inside, closed;

static int wait_here(int n)
{
	sem_post(&inside);
	sem_wait(&closed);
	return n * 2;
}

static void *call(void *number)
{
	return (void *)(long)deeper(wait_here, *(int *)number);
}

int main(int count, char **words)
{
	long sum = 0;

	if (count < 2)
		return 2;
	sem_init(&inside, 0, 0);
	sem_init(&closed, 0, 0);
	for (int round = 0; round < ROUNDS; round++) {
		void *library = dlopen(words[1], RTLD_NOW), *result;
		pthread_t threads[THREADS];
		int numbers[THREADS];

		if (!library)
			return 1;
		deeper = (passer *)dlsym(library, "pass_deeper");
		for (int i = 0; i < THREADS; i++) {
			numbers[i] = i;
			pthread_create(&threads[i], NULL, call, &numbers[i]);
		}
		for (int i = 0; i < THREADS; i++)
			sem_wait(&inside);
		dlclose(library);
		mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
		for (int i = 0; i < THREADS; i++)
			sem_post(&closed);
		for (int i = 0; i < THREADS; i++) {
			pthread_join(threads[i], &result);
			sum += (long)result;
		}
	}
	printf("%ld\n", sum);
	return 0;
}

#endif
