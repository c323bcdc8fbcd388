/* Three nested functions that do next to nothing, called in a loop: what a
 * profiler costs per call shows here undiluted.
 * usage: micro [ITERATIONS [THREADS]]   each thread runs all the iterations */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* The empty asm keeps the compiler from seeing through the functions, so
 * that every variant makes exactly the same calls. */
#define OPAQUE(x) __asm__ volatile("" : "+r"(x))

__attribute__((noinline)) unsigned long c(unsigned long x)
{
	OPAQUE(x);
	return x * 3 + 1;
}

__attribute__((noinline)) unsigned long b(unsigned long x)
{
	unsigned long r = c(x + 5);
	OPAQUE(r);
	return r ^ 7;
}

__attribute__((noinline)) unsigned long a(unsigned long x)
{
	unsigned long r = b(x ^ 3);
	OPAQUE(r);
	return r + 2;
}

static unsigned long iterations = 40000000;

static void *loop(void *result)
{
	unsigned long sum = 0;
	for (unsigned long i = 0; i < iterations; i++)
		sum = sum * 5 + a(i);
	*(unsigned long *)result = sum;
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long threads = 0, sum = 0;
	if (argc > 1)
		iterations = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		threads = strtoul(argv[2], NULL, 10);
	if (threads == 0) {
		loop(&sum);
	} else {
		pthread_t *id = calloc(threads, sizeof *id);
		unsigned long *part = calloc(threads, sizeof *part);
		if (!id || !part)
			return 1;
		for (unsigned long i = 0; i < threads; i++)
			if (pthread_create(&id[i], NULL, loop, &part[i]) != 0) {
				fprintf(stderr,
					"micro: cannot start thread %lu\n", i);
				return 1;
			}
		for (unsigned long i = 0; i < threads; i++) {
			pthread_join(id[i], NULL);
			sum += part[i];
		}
		free(id);
		free(part);
	}
	printf("%lu\n", sum);
	return 0;
}
