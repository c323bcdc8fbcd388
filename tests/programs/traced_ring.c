/*
 * Two threads with more calls than a ring of 1 MiB holds, in a fixed order that never
 * repeats.
 */
#include "truth.h"

#include <pthread.h>

#define CALLS 120000

static APART void one(void)
{
	COUNTED;
}

static APART void two(unsigned deeper)
{
	COUNTED;
	if (deeper)
		one();
}

static APART void three(void)
{
	COUNTED;
	two(1);
	one();
}

static APART void calls(unsigned state)
{
	for (int i = 0; i < CALLS; i++) {
		state = state * 1664525u + 1013904223u;
		switch (state >> 30) {
		case 0:
			one();
			break;
		case 1:
			three();
			break;
		default:
			two(state >> 29 & 1);
		}
	}
}

static void *run(void *unused)
{
	calls(1);
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	calls(2);
	return 0;
}
