/*
 * ignored_signals SECONDS: one thread computes, one waits in epoll_wait(2), and one starts
 * children that end at once.  SIGCHLD is ignored: no wait may end.  Then the sampler's
 * handler must block those signals that the program handles, and no ignored ones.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAMPLER 33

static volatile int is_over;
static int epoll, end_event;
static unsigned interrupted, children;
static volatile unsigned long computed;

static void *wait_for_end(void *unused)
{
	struct epoll_event event;
	int r;

	while ((r = epoll_wait(epoll, &event, 1, -1)) < 0 && errno == EINTR)
		interrupted++;
	return r == 1 ? unused : &epoll;
}

static void *start_children(void *unused)
{
	while (!is_over) {
		pid_t pid = vfork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
		children++;
	}
	return unused;
}

static unsigned long deep(int levels)
{
	if (levels > 0)
		return deep(levels - 1) + 1;
	for (int i = 0; i < 100000; i++)
		computed += (unsigned long)i;
	return computed;
}

static void take(int signal)
{
	(void)signal;
}

/* Whether the sampler's handler blocks @signal; -1: there is no sampler.  syscall() would
 * show the program's action. */
static int is_blocked(int signal)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} action = { 0 };
	register long size asm("r10") = 8;
	long r = SYS_rt_sigaction;

	asm volatile("syscall"
		     : "+a"(r)
		     : "D"(SAMPLER), "S"(0), "d"(&action), "r"(size)
		     : "rcx", "r11", "memory");
	if (r < 0 || !action.handler)
		return -1;
	return (int)(action.mask >> (signal - 1) & 1);
}

static void show(const char *when)
{
	printf("%s: SIGCHLD %d, SIGURG %d, SIGPIPE %d, SIGUSR1 %d\n", when,
	       is_blocked(SIGCHLD), is_blocked(SIGURG), is_blocked(SIGPIPE),
	       is_blocked(SIGUSR1));
}

int main(int count, char **arguments)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct sigaction action = { .sa_handler = take };
	time_t end = time(NULL) + (count > 1 ? atoi(arguments[1]) : 1);
	pthread_t waits, starts;
	uint64_t one = 1;

	epoll = epoll_create1(0);
	end_event = eventfd(0, 0);
	epoll_ctl(epoll, EPOLL_CTL_ADD, end_event, &event);
	pthread_create(&waits, NULL, wait_for_end, NULL);
	pthread_create(&starts, NULL, start_children, NULL);
	while (time(NULL) < end)
		deep(60);
	is_over = 1;
	pthread_join(starts, NULL);
	if (write(end_event, &one, sizeof(one)) != sizeof(one))
		return 1;
	pthread_join(waits, NULL);
	fprintf(stderr, "%u children\n", children);
	printf("interrupted %u\n", interrupted);
	show("at first");
	signal(SIGCHLD, take);
	sigaction(SIGURG, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	show("handled");
	signal(SIGCHLD, SIG_DFL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGURG, &action, NULL);
	signal(SIGPIPE, SIG_DFL);
	show("ignored again");
	return 0;
}
