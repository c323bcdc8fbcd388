/*
 * Sets signal masks in every possible way, and prints what it reads back: also for
 * signals that a profiler may use.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#define LAST 64		/* sigaddset accepts it, whatever SIGRTMAX is */

static void print(const char *what, const sigset_t *set)
{
	unsigned long bits;
	char line[100];

	memcpy(&bits, set, sizeof(bits));
	snprintf(line, sizeof(line), "%s %lx\n", what, bits);
	print_text(line);
}

static APART void work(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000l + now.tv_nsec -
		       begin.tv_nsec < 20000000);
}

static void *in_thread(void *what)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	print(what, &now);
	work();
	return NULL;
}

static void handle(int signal)
{
	print_text(signal == LAST ? "the last\n" : "another\n");
}

static void raw(void)
{
	unsigned long all = ~0ul, none = 0;
	sigset_t before;

	sigemptyset(&before);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
	print("before", &before);
	work();
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &before, 8);
	print("raw", &before);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8);
}

/* As the kernel has it. */
struct raw_action {
	void (*handler)(int signal);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

static void raw_actions(void)
{
	static const int signals[] = { SIGUSR2, 60, 61, 62, 63, LAST };

	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		struct raw_action action = { .handler = handle,
					     .flags = SA_RESTART,
					     .mask = ~0ul };
		struct raw_action before = { .flags = 1 }, now = before;
		sigset_t mask;

		syscall(SYS_rt_sigaction, signals[i], NULL, &before, 8);
		syscall(SYS_rt_sigaction, signals[i], &action, &now, 8);
		if (memcmp(&before, &now, sizeof(now)) != 0)
			print_text("another action\n");
		syscall(SYS_rt_sigaction, signals[i], &before, &now, 8);
		memcpy(&mask, &now.mask, sizeof(now.mask));
		print("of a raw handler", &mask);
		if (now.handler != handle || !(now.flags & SA_RESTART))
			print_text("another handler\n");
		if (syscall(SYS_rt_sigaction, signals[i], (void *)16, NULL,
			    8) != -1 ||
		    errno != EFAULT)
			print_text("an action is read from nowhere\n");
		if (syscall(SYS_rt_sigaction, signals[i], NULL, NULL, 4) != -1 ||
		    errno != EINVAL)
			print_text("a mask of four bytes is taken\n");
	}
	for (int signal = SIGKILL; signal <= SIGSTOP;
	     signal += SIGSTOP - SIGKILL) {
		struct raw_action action = { .handler = handle };

		if (syscall(SYS_rt_sigaction, signal, &action, NULL, 8) != -1 ||
		    errno != EINVAL)
			print_text("a signal that no program handles\n");
	}
}

int main(void)
{
	struct sigaction action = { .sa_handler = handle }, read;
	sigset_t all, last, before, now;
	pthread_t thread;

	sigfillset(&all);
	sigemptyset(&last);
	sigaddset(&last, LAST);
	sigprocmask(SIG_BLOCK, &all, &before);
	print("at first", &before);
	sigprocmask(SIG_BLOCK, NULL, &now);
	print("all", &now);
	work();
	pthread_create(&thread, NULL, in_thread, "inherited");
	pthread_join(thread, NULL);
	sigprocmask(SIG_UNBLOCK, &last, &now);
	print("all", &now);
	pthread_sigmask(SIG_BLOCK, &last, &now);
	print("all but the last", &now);
	action.sa_mask = all;
	for (int signal = 60; signal <= LAST; signal++) {
		sigaction(signal, &action, NULL);
		sigaction(signal, NULL, &read);
		print("of a handler", &read.sa_mask);
	}
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR1, NULL, &read);
	print("of a handler", &read.sa_mask);
	sigprocmask(SIG_SETMASK, &before, &now);
	print("all", &now);
	/* A pending signal arrives when it is unblocked. */
	sigprocmask(SIG_BLOCK, &last, NULL);
	raise(LAST);
	sigpending(&now);
	print("pending", &now);
	sigprocmask(SIG_UNBLOCK, &last, NULL);
	sigpending(&now);
	print("pending", &now);
	raw();
	raw_actions();
	/* The new mask and the old one may be the same object. */
	now = all;
	sigprocmask(SIG_SETMASK, &now, &now);
	print("none", &now);
	sigprocmask(SIG_SETMASK, &now, &now);
	print("all", &now);
	return 0;
}
