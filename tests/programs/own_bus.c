/*
 * own_bus WHAT - a program with a SIGBUS of its own: it maps a file, shortens it and
 * reads the removed part.  WHAT says how it handles the signal; it prints what it
 * reads, and the handler that the system returns.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static volatile char *hole;
static sigjmp_buf before;
static volatile sig_atomic_t comes;
static char stack[65536];

static QUIET void say(const char *what, long number)
{
	char line[80];

	snprintf(line, sizeof(line), "%s %ld\n", what, number);
	print_text(line);
}

static void make_hole(void)
{
	char path[] = "/tmp/own-bus.XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	if (ftruncate(fd, 8192) != 0)
		exit(1);
	hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	hole[5000] = 1;
	if (ftruncate(fd, 100) != 0)
		exit(1);
}

static void look(void)
{
	say("look", hole[5000]);
}

static void say_mask(const char *what)
{
	sigset_t now;

	sigprocmask(SIG_SETMASK, NULL, &now);
	say(what, sigismember(&now, SIGBUS));
}

static void jump(int signal, siginfo_t *info, void *context)
{
	(void)context;
	say("signal", signal);
	say("code", info->si_code);
	say("place",
	    info->si_code > 0 ? (volatile char *)info->si_addr - hole : -1);
	say("on stack", (char *)&signal >= stack &&
				(char *)&signal < stack + sizeof(stack));
	say_mask("masked");
	if (comes++ > 2)
		_exit(9);
	siglongjmp(before, 1);
}

/* Provides the missing page before it returns. */
static void fill(int signal)
{
	say("signal", signal);
	comes++;
	mmap((char *)hole + 4096, 4096, PROT_READ,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void count(int signal)
{
	(void)signal;
	comes++;
}

static void set(void (*call)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | flags }, now;

	action.sa_sigaction = call;
	sigaddset(&action.sa_mask, SIGUSR2);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGBUS, NULL, &now);
	say("same", now.sa_sigaction == call);
	say("flags", now.sa_flags & ~0x04000000);
	say("mask", sigismember(&now.sa_mask, SIGUSR2));
}

static void try_handler(int flags)
{
	stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) };

	sigaltstack(&own, NULL);
	set(jump, flags);
	for (int i = 0; i < 2; i++)
		if (sigsetjmp(before, 1) == 0)
			look();
	say_mask("after");
}

static void set_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	sigprocmask(how, &set, NULL);
}

static void try_blocked(void)
{
	sigset_t pending;

	signal(SIGBUS, count);
	set_mask(SIG_BLOCK);
	say_mask("blocked");
	raise(SIGBUS);
	say("comes", comes);
	sigpending(&pending);
	say("pending", sigismember(&pending, SIGBUS));
	set_mask(SIG_UNBLOCK);
	say("comes", comes);
	sigpending(&pending);
	say("pending", sigismember(&pending, SIGBUS));
	say_mask("blocked");
	set_mask(SIG_SETMASK);
	kill(getpid(), SIGBUS);
	say("comes", comes);
	sigemptyset(&pending);
	sigprocmask(SIG_SETMASK, &pending, NULL);
	say("comes", comes);
	raise(SIGBUS);
	say("comes", comes);
}

static void try_waiting(void)
{
	struct signalfd_siginfo info = { 0 };
	struct timespec second = { 1, 0 };
	sigset_t set;
	int fd, got = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	set_mask(SIG_BLOCK);
	raise(SIGBUS);
	sigwait(&set, &got);
	say("got", got);
	raise(SIGBUS);
	say("got", sigtimedwait(&set, NULL, &second));
	fd = signalfd(-1, &set, 0);
	raise(SIGBUS);
	say("read", read(fd, &info, sizeof(info)) == sizeof(info));
	say("got", info.ssi_signo);
}

static void *wait_for_it(void *got)
{
	sigset_t set;

	sigfillset(&set);
	sigwait(&set, got);
	return NULL;
}

static void try_thread(void)
{
	pthread_t thread;
	int got = 0;

	set_mask(SIG_BLOCK);
	pthread_create(&thread, NULL, wait_for_it, &got);
	usleep(50000);
	pthread_kill(thread, SIGBUS);
	pthread_join(thread, NULL);
	say("got", got);
}

/* A child prints the signal state that it inherited. */
static void try_children(char *self)
{
	char *words[] = { self, "tell", NULL };
	pid_t child;

	signal(SIGBUS, SIG_IGN);
	set_mask(SIG_BLOCK);
	posix_spawn(&child, self, NULL, NULL, words, NULL);
	waitpid(child, NULL, 0);
	child = vfork();
	if (child == 0) {
		execv(self, words);
		_exit(127);
	}
	waitpid(child, NULL, 0);
	execl("/nonexistent", "none", NULL);
	say("ignored", signal(SIGBUS, SIG_DFL) == SIG_IGN);
	say_mask("blocked");
}

static void tell(void)
{
	struct sigaction now;

	sigaction(SIGBUS, NULL, &now);
	say("ignored", now.sa_handler == SIG_IGN);
	say_mask("blocked");
}

static void *look_in_thread(void *unused)
{
	look();
	return unused;
}

int main(int words, char **word)
{
	const char *what = words > 1 ? word[1] : "";
	pthread_t thread;

	make_hole();
	if (!strcmp(what, "default"))
		look();
	else if (!strcmp(what, "ignored"))
		signal(SIGBUS, SIG_IGN), look();
	else if (!strcmp(what, "sent"))
		raise(SIGBUS);
	else if (!strcmp(what, "thread"))
		pthread_create(&thread, NULL, look_in_thread, NULL),
			pthread_join(thread, NULL);
	else if (!strcmp(what, "masked"))
		signal(SIGBUS, count), set_mask(SIG_BLOCK), look();
	else if (!strcmp(what, "filled"))
		signal(SIGBUS, fill), look(), say("comes", comes);
	else if (!strcmp(what, "jump"))
		try_handler(0);
	else if (!strcmp(what, "stack"))
		try_handler(SA_ONSTACK);
	else if (!strcmp(what, "nodefer"))
		try_handler(SA_NODEFER);
	else if (!strcmp(what, "once"))
		try_handler((int)SA_RESETHAND);
	else if (!strcmp(what, "blocked"))
		try_blocked();
	else if (!strcmp(what, "waiting"))
		try_waiting();
	else if (!strcmp(what, "waiting thread"))
		try_thread();
	else if (!strcmp(what, "children"))
		try_children(word[0]);
	else if (!strcmp(what, "tell"))
		tell();
	else
		return 2;
	return 3;
}
