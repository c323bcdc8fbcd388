/*
 * killed FILE - two threads call and count, each in its own words of FILE, until
 * another process kills this one: word 2n is set before a call's hook, 2n+1 after it.
 */
#include "truth.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

struct counters {
	volatile unsigned long begun, entered, pad[6];
};

static struct counters *counters;

static APART void leaf(int self)
{
	counters[self].entered++;
}

static APART void grow(int self, unsigned path, int depth)
{
	counters[self].entered++;
	if (depth > 0) {
		counters[self].begun++;
		grow(self, path / 2, depth - 1);
	}
}

/* Sometimes makes new paths, so that files grow. */
static APART void inner(int self, unsigned round)
{
	counters[self].entered++;
	for (int i = 0; i < 10; i++) {
		counters[self].begun++;
		leaf(self);
	}
	if (round % 64 == 0) {
		counters[self].begun++;
		grow(self, round, (int)(round / 64 % 2000));
	}
}

static void *loop(void *argument)
{
	int self = (int)(long)argument;

	counters[self].entered++;
	for (unsigned round = 0;; round++) {
		counters[self].begun++;
		inner(self, round);
	}
	return NULL;
}

QUIET int main(int count, char **arguments)
{
	int fd = open(arguments[count - 1], O_RDWR);
	pthread_t thread;

	counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counters == MAP_FAILED)
		return 1;
	close(fd);
	print_text("go\n");
	counters[1].begun++;
	pthread_create(&thread, NULL, loop, (void *)1);
	counters[0].begun++;
	loop((void *)0);
}
