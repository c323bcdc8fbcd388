/*
 * Switches its own XRay sleds on and off by LLVM's runtime, again and again, while another
 * thread runs them.
 */
#include <atomic>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <xray/xray_interface.h>

static std::atomic<unsigned long> handled;
static std::atomic<bool> done;
static volatile unsigned sum;

__attribute__((noinline)) static unsigned leaf(unsigned x)
{
	sum += x;
	return sum;
}

__attribute__((noinline)) static unsigned middle(unsigned x)
{
	sum++;
	return leaf(x);
}

__attribute__((xray_never_instrument)) static void handler(int32_t id,
							   XRayEntryType type)
{
	(void)id, (void)type;
	handled++;
}

static void *run(void *unused)
{
	while (!done)
		for (unsigned i = 0; i < 1000; i++)
			middle(i);
	return unused;
}

int main(int argc, char **argv)
{
	const struct timespec nap = { 0, 300000 };
	int rounds = argc > 1 ? atoi(argv[1]) : 300;
	unsigned seen = 0;
	pthread_t thread;

	__xray_init();
	__xray_set_handler(handler);
	pthread_create(&thread, NULL, run, NULL);
	for (int i = 0; i < rounds; i++) {
		unsigned long before;

		nanosleep(&nap, NULL);
		__xray_patch();
		before = handled;
		while (handled == before)
			nanosleep(&nap, NULL);
		seen++;
		__xray_unpatch();
	}
	done = true;
	pthread_join(thread, NULL);
	printf("seen %u\n", seen);
	return 0;
}
