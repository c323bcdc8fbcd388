/*
 * attached THREADS WAIT: a program to attach to.
 *
 * Its threads call instrumented functions and check their own floating point values.  The
 * main thread waits in a system call, WAIT, or calls functions, too ("busy").  After a
 * line or the end of standard input, it prints what went wrong, and ends.  SIGUSR1 lets
 * one of them execute "true".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Of <linux/futex.h>, which musl-gcc does not find. */
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

#define PLAIN __attribute__((no_instrument_function))

static volatile int ends;
static unsigned long wrong, interrupted;
static int channel[2];
static sem_t semaphore;
static int word, semaphores = -1, messages = -1;
static const struct timespec day = { 86400, 0 };

__attribute__((noinline)) static int leaf(int number)
{
	__asm__ volatile("");
	return number + 1;
}

__attribute__((noinline)) static int middle(int number)
{
	return leaf(number) + leaf(number + 1);
}

/* Registers of all kinds are in use at any moment. */
static PLAIN void check(int number)
{
	double a = number * 0.5, b = a + 1.25;
	long double c = number;
	int got = middle(number);

	if (got != 2 * number + 3 || a + b != number + 1.25 || c != number)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

/* The kernel keeps the alternate stack of a thread beside its registers. */
static PLAIN void set_signal_stack(stack_t *stack)
{
	*stack = (stack_t){ .ss_sp = malloc(65536), .ss_size = 65536 };
	if (!stack->ss_sp || sigaltstack(stack, NULL) < 0)
		abort();
}

static PLAIN void check_signal_stack(const stack_t *stack)
{
	stack_t now;

	if (sigaltstack(NULL, &now) < 0 || now.ss_sp != stack->ss_sp ||
	    now.ss_size != stack->ss_size || now.ss_flags != 0)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

static PLAIN void *work(void *unused)
{
	stack_t stack;

	set_signal_stack(&stack);
	for (int i = 0; !ends; i = (i + 1) & 0xffff) {
		void *volatile block = malloc(16 + (i & 255));

		check(i);
		memset(block, 1, 16);
		free(block);
	}
	check_signal_stack(&stack);
	return unused;
}

/* Ends all waits. */
static PLAIN void wake(void)
{
	struct sembuf add = { 0, 1, 0 };
	struct {
		long type;
		char text;
	} message = { 1, 'x' };

	sem_post(&semaphore);
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
	kill(getpid(), SIGUSR2);
	if (write(channel[1], "x", 1) != 1 ||
	    (semaphores >= 0 && semop(semaphores, &add, 1) < 0) ||
	    (messages >= 0 && msgsnd(messages, &message, 1, 0) < 0))
		abort();
}

static PLAIN void *watch(void *unused)
{
	char line[16];

	/* A call that succeeds does not change errno. */
	errno = 12345;
	if (read(0, line, sizeof(line)) >= 0)
		ends = 1;
	if (errno != 12345)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	wake();
	return unused;
}

static PLAIN void take(long result)
{
	if (result < 0 && errno == EINTR)
		interrupted++;
	else if (result < 0)
		abort();
}

static PLAIN double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Sleeps for @time, and does not wake up earlier. */
static PLAIN void sleep_for(const struct timespec *time)
{
	double begin = now();

	take(nanosleep(time, NULL));
	if (now() - begin < (double)time->tv_nsec * 1e-9)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

/* Calls that end with EINTR when a tracer stops the thread. */
static PLAIN bool wait_until_stopped(const char *kind)
{
	struct sembuf take_one = { 0, -1, 0 };
	struct {
		long type;
		char text;
	} message;
	sigset_t signals;
	char byte;

	if (!strcmp(kind, "receive")) {
		take(recv(channel[0], &byte, 1, 0));
	} else if (!strcmp(kind, "signal")) {
		sigemptyset(&signals);
		sigaddset(&signals, SIGUSR2);
		take(sigtimedwait(&signals, NULL, &day));
	} else if (!strcmp(kind, "semop")) {
		take(semop(semaphores, &take_one, 1));
	} else if (!strcmp(kind, "message")) {
		take(msgrcv(messages, &message, 1, 0, 0));
	} else {
		return false;
	}
	return true;
}

static PLAIN void wait_as(const char *kind)
{
	const struct timespec shortly = { 0, 300000000 };
	struct epoll_event event = { .events = EPOLLIN };
	struct pollfd poll_for = { .fd = channel[0], .events = POLLIN };
	int set;
	char byte;

	if (wait_until_stopped(kind))
		return;
	if (!strcmp(kind, "read"))
		take(read(channel[0], &byte, 1));
	else if (!strcmp(kind, "poll"))
		take(poll(&poll_for, 1, -1));
	else if (!strcmp(kind, "semaphore"))
		take(sem_wait(&semaphore));
	else if (!strcmp(kind, "futex"))
		take(word ? 0 :
			    syscall(SYS_futex, &word, FUTEX_WAIT, 0, &day, NULL,
				    0));
	else if (!strcmp(kind, "sleep"))
		sleep_for(&shortly);
	else if (!strcmp(kind, "fork")) {
		pid_t child = fork();

		if (child == 0) {
			check(7);
			_exit(0);
		}
		take(waitpid(child, NULL, 0));
	} else if (!strcmp(kind, "epoll")) {
		set = epoll_create1(0);
		epoll_ctl(set, EPOLL_CTL_ADD, channel[0], &event);
		take(epoll_wait(set, &event, 1, -1));
		close(set);
	} else {
		for (int i = 0; i < 10000; i++)
			check(i);
	}
}

static PLAIN void execute(int number)
{
	(void)number;
	execlp("true", "true", (char *)NULL);
	abort();
}

/* Makes what the wait needs.  Semaphores and messages of System V outlive a killed process,
 * so others do not have them. */
static PLAIN bool open_channel(const char *kind)
{
	struct timeval limit = { .tv_sec = day.tv_sec };

	if (!strcmp(kind, "semop"))
		semaphores = semget(IPC_PRIVATE, 1, 0600);
	else if (!strcmp(kind, "message"))
		messages = msgget(IPC_PRIVATE, 0600);
	if (strcmp(kind, "receive") != 0)
		return pipe(channel) == 0;
	return socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == 0 &&
	       setsockopt(channel[0], SOL_SOCKET, SO_RCVTIMEO, &limit,
			  sizeof(limit)) == 0;
}

PLAIN int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t *threads = calloc((size_t)count + 1, sizeof(*threads));
	const char *kind = argc > 2 ? argv[2] : "busy";
	sigset_t signals;
	stack_t stack;

	set_signal_stack(&stack);
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (sem_init(&semaphore, 0, 0) < 0 || !open_channel(kind))
		return 2;
	signal(SIGUSR1, execute);
	pthread_create(&threads[count], NULL, watch, NULL);
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	puts("ready");
	fflush(stdout);
	while (!ends)
		wait_as(kind);
	check_signal_stack(&stack);
	for (int i = 0; i <= count; i++)
		pthread_join(threads[i], NULL);
	if (semaphores >= 0)
		semctl(semaphores, 0, IPC_RMID);
	if (messages >= 0)
		msgctl(messages, IPC_RMID, NULL);
	printf("wrong %lu interrupted %lu\n", wrong, interrupted);
	return 0;
}
