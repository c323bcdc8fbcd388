/*
 * Switches all calls off and on ("source_toggled TIMES") while two threads call
 * functions: the result must not depend on it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 2000

static int is_over;

__attribute__((noinline)) static uint64_t mix(uint64_t a, uint64_t b,
					      uint64_t c, uint64_t d,
					      uint64_t e, uint64_t f, double x,
					      double y)
{
	__asm__ volatile("" : "+r"(a), "+x"(x));
	return a * 31 + b * 7 + (c ^ d) + e * f + (uint64_t)(x * y);
}

__attribute__((noinline)) static double scale(double x, float y)
{
	__asm__ volatile("" : "+x"(x));
	return x * 0.5 + y;
}

/* A leaf that ends with a tail call. */
__attribute__((noinline)) static uint64_t last(uint64_t a)
{
	return mix(a, 1, 2, 3, 4, 5, 1.5, scale((double)(a & 1023), 2));
}

static uint64_t round_of(uint64_t seed)
{
	for (int i = 0; i < ROUNDS; i++)
		seed = mix(seed, last(seed), 3, seed >> 3, 5, 6,
			   scale((double)(seed & 0xffff), 1), 3);
	return seed;
}

/* Each round has the same result. */
static void *work(void *argument)
{
	uint64_t wanted = round_of(1), wrong = 0;

	(void)argument;
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		wrong += round_of(1) != wanted;
	return (void *)(wanted ^ wrong);
}

int main(int count, char **words)
{
	void (*disable)(void) = (void (*)(void))dlsym(RTLD_DEFAULT,
						      "shim_hooks_disable");
	void (*enable)(void) = (void (*)(void))dlsym(RTLD_DEFAULT,
						     "shim_hooks_enable");
	int times = count > 1 ? atoi(words[1]) : 0;
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; disable && i < times; i++) {
		disable();
		enable();
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++) {
		void *result;

		pthread_join(threads[i], &result);
		printf("%llx\n", (unsigned long long)(uintptr_t)result);
	}
	return 0;
}
