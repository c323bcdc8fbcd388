/*
 * attached_waits THREADS: a program to attach to whose threads wait.
 *
 * One half sleeps in calls that only the kernel can continue, again and again.  The other
 * half waits in one call whose number is not in the code before it: by syscall(2), or by an
 * instruction.  After a line or the end of standard input, it prints what went wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int ends;
static unsigned wrong, interrupted;
static int word, channel[2];
static const struct timespec day = { 86400, 0 };

static void check(int is_right)
{
	if (!is_right)
		__atomic_add_fetch(errno == EINTR ? &interrupted : &wrong, 1,
				   __ATOMIC_RELAXED);
}

static void sleep_often(void)
{
	const struct timespec second = { 1, 0 };

	while (!ends)
		check(nanosleep(&second, NULL) == 0);
}

static void wait_often(void)
{
	struct timespec limit;
	sem_t none;

	sem_init(&none, 0, 0);
	while (!ends) {
		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec++;
		check(sem_timedwait(&none, &limit) < 0 && errno == ETIMEDOUT);
	}
}

static long futex_by_instruction(void)
{
	volatile long number = SYS_futex;
	register const struct timespec *limit __asm__("r10") = &day;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(&word), "S"(FUTEX_WAIT), "d"(0l),
			   "r"(limit)
			 : "rcx", "r11", "memory");
	errno = result < 0 ? (int)-result : 0;
	return result < 0 ? -1 : result;
}

static void wait_once(unsigned kind)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct pollfd input = { .fd = channel[0], .events = POLLIN };
	long result;
	int set;

	switch (kind) {
	case 0:
		result = futex_by_instruction();
		check(result == 0 || errno == EAGAIN);
		break;
	case 1:
		result = syscall(SYS_futex, &word, FUTEX_WAIT, 0, &day, NULL,
				 0);
		check(result == 0 || errno == EAGAIN);
		break;
	case 2: check(syscall(SYS_poll, &input, 1, 86400000) == 1); break;
	default:
		set = epoll_create1(0);
		epoll_ctl(set, EPOLL_CTL_ADD, channel[0], &event);
		check(syscall(SYS_epoll_wait, set, &event, 1, 86400000) == 1);
	}
}

static void *work(void *argument)
{
	long number = (long)argument;

	switch (number % 4) {
	case 0: sleep_often(); break;
	case 1: wait_often(); break;
	default: wait_once((unsigned)(number / 2) % 4);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t *threads = calloc((size_t)count, sizeof(*threads));
	char line[16];

	if (!threads || pipe(channel) != 0)
		return 2;
	for (long i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	puts("ready");
	fflush(stdout);
	if (read(0, line, sizeof(line)) < 0)
		return 2;
	ends = 1;
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &word, FUTEX_WAKE, count, NULL, NULL, 0);
	close(channel[1]);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("wrong %u interrupted %u\n", wrong, interrupted);
	return 0;
}
