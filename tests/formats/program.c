/*
 * What tests/formats/make records: two threads that count, allocate, leak, wait for a
 * lock and take some time.  With an argument, main first waits in two calls for the end of
 * standard input.  A rank of a job tells about messages.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <shim/mark.h>
#include <shim/message.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *volatile kept;

__attribute__((noinline)) int leaf(int n)
{
	return n / 2;
}

__attribute__((noinline)) int middle(int n, const char *text)
{
	int i, sum = text[0];

	for (i = 0; i < n; i++)
		sum += leaf(i);
	return sum;
}

__attribute__((noinline)) void allocate(void)
{
	kept = malloc(1000);
	free(kept);
	kept = malloc(100);
	kept = malloc(30);
}

__attribute__((noinline)) void hold(int us)
{
	pthread_mutex_lock(&lock);
	usleep((useconds_t)us);
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) void spend(double seconds)
{
	struct timespec now, begin;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((double)(now.tv_sec - begin.tv_sec) +
		       (double)(now.tv_nsec - begin.tv_nsec) / 1e9 <
	       seconds);
}

__attribute__((noinline)) int await_end(void)
{
	char byte;
	ssize_t got;

	if (write(1, "ready\n", 6) != 6)
		return 1;
	do
		got = read(0, &byte, 1);
	while (got > 0);
	return middle(4, "later");
}

__attribute__((noinline)) int serve(void)
{
	return await_end() + 1;
}

static void *work(void *argument)
{
	middle(5, "thread");
	hold(1000);
	return argument;
}

/* Rank 0 of 2 sends 8 bytes to rank 1; then both meet. */
__attribute__((noinline)) void exchange(uint32_t rank)
{
	struct shim_message message = {
		.kind = rank == 0 ? SHIM_MESSAGE_SEND : SHIM_MESSAGE_RECEIVE,
		.tag = 5,
		.communicator = 1,
		.size = 2,
		.rank = rank,
		.peer = rank == 0 ? 1 : 0,
		.sent = rank == 0 ? 8 : 0,
		.received = rank == 0 ? 0 : 8,
	};

	if (!shim_message_emit)
		return;
	shim_message_emit(&message);
	message.kind = SHIM_MESSAGE_COLLECTIVE;
	message.tag = SHIM_COLLECTIVE_BARRIER;
	message.peer = -1;
	message.sent = message.received = 0;
	shim_message_emit(&message);
}

int main(int argc, char **argv)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	pthread_t thread;

	(void)argv;
	if (argc > 1)
		serve();
	shim_mark("begin");
	pthread_mutex_lock(&lock);
	pthread_create(&thread, NULL, work, NULL);
	middle(3, "main");
	middle(2, "again");
	if (rank)
		exchange((uint32_t)atoi(rank));
	allocate();
	usleep(20000);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	spend(0.05);
	return 0;
}
