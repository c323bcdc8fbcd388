/*
 * identities [libc|raw] - a thread becomes another user and root again, all the time, by
 * libc's function, for all threads, or by the system call, for itself; others call
 * functions and end.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS	250
#define THREADS 4
#define QUIET	__attribute__((no_instrument_function))

static int is_raw, is_over;
static long calls;

__attribute__((noinline)) static void leaf(void)
{
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}

QUIET static void change(uid_t user)
{
	if (is_raw)
		syscall(SYS_setresuid, -1, user, -1);
	else if (seteuid(user) != 0)
		return;
}

QUIET static void *change_always(void *unused)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		change(65534);
		leaf();
		change(0);
	}
	return unused;
}

QUIET static void *call(void *unused)
{
	for (int i = 0; i < 4; i++)
		leaf();
	return unused;
}

QUIET int main(int argc, char **argv)
{
	pthread_t changes, threads[THREADS];

	is_raw = argc > 1 && strcmp(argv[1], "raw") == 0;
	pthread_create(&changes, NULL, change_always, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, call, NULL);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
	pthread_join(changes, NULL);
	printf("calls all %ld\n", calls);
	return 0;
}
