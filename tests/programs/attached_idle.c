/*
 * attached_idle WAIT: a program to attach to whose only thread waits, in epoll_wait, ppoll,
 * pselect or sigsuspend, and computes for a moment when a line of standard input, or SIGUSR1,
 * has come.  It ends at the end of standard input, or at SIGUSR2.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

static volatile int ends;
static volatile unsigned long sum;
static unsigned interrupted;

static void handle(int number)
{
	ends = number == SIGUSR2;
}

static int wait_for(const char *kind, int set)
{
	struct epoll_event event;
	struct pollfd input = { .fd = 0, .events = POLLIN };
	sigset_t none;
	fd_set inputs;

	FD_ZERO(&inputs);
	FD_SET(0, &inputs);
	sigemptyset(&none);
	if (!strcmp(kind, "epoll"))
		return epoll_wait(set, &event, 1, -1);
	if (!strcmp(kind, "ppoll"))
		return ppoll(&input, 1, NULL, &none);
	if (!strcmp(kind, "pselect"))
		return pselect(1, &inputs, NULL, NULL, NULL, &none);
	return sigsuspend(&none);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "epoll";
	struct epoll_event event = { .events = EPOLLIN };
	struct sigaction action = { .sa_handler = handle };
	int set = epoll_create1(0);
	sigset_t both;
	char line[16];

	epoll_ctl(set, EPOLL_CTL_ADD, 0, &event);
	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, SIGUSR2);
	sigprocmask(SIG_BLOCK, &both, NULL);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	puts("ready");
	fflush(stdout);
	while (!ends) {
		for (int i = 0; i < 20000000; i++)
			sum += (unsigned long)i;
		if (wait_for(kind, set) >= 0)
			ends = read(0, line, sizeof(line)) <= 0 ||
			       line[0] == 'e';
		else if (strcmp(kind, "sigsuspend") != 0)
			interrupted++;
	}
	printf("wrong 0 interrupted %u\n", interrupted);
	return 0;
}
