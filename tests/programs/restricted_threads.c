/*
 * Threads start others and make new call paths, while one restricts the system calls of
 * the process.  Ends with 1 if any of them finds signals blocked, which it has not.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#define THREADS 4
#define APART	__attribute__((noinline))

static volatile int ends, is_blocked;

static void look(void)
{
	sigset_t mask;

	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	if (sigismember(&mask, SIGTERM))
		is_blocked = 1;
}

/* The bits of @path choose among the functions: each number has a call path. */
static APART int left(int depth, unsigned path);

static APART int right(int depth, unsigned path)
{
	if (depth == 0)
		return 0;
	return 1 + (path & 1 ? left(depth - 1, path >> 1) :
			       right(depth - 1, path >> 1));
}

static APART int left(int depth, unsigned path)
{
	if (depth == 0)
		return 0;
	return 2 + (path & 1 ? left(depth - 1, path >> 1) :
			       right(depth - 1, path >> 1));
}

static void *begin(void *unused)
{
	look();
	return unused;
}

static void *work(void *argument)
{
	unsigned path = (unsigned)(uintptr_t)argument << 14;
	pthread_t thread;

	while (!ends) {
		if (pthread_create(&thread, NULL, begin, NULL) == 0)
			pthread_join(thread, NULL);
		for (int i = 0; i < 200; i++)
			right(16, path++);
		look();
	}
	return argument;
}

int main(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &all };
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	usleep(4000);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0))
		puts("no seccomp");
	usleep(4000);
	ends = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return is_blocked;
}
