/*
 * resisting CASE - reaches code that is hard to restore, or where the signal of a trap
 * cannot arrive.  Each line states the cases that reach it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

static const char *root;
static volatile int zero;

static int work(int number)
{
	int result = 0;	//@ *

	for (int i = 0; i < number; i++)	//@ *
		result += i;	//@ *
	if (zero)	//@ *
		result = 0;	//@ -
	printf("%d\n", result);	//@ *
	return result;	//@ *
}

/* --- no files --- */

static int changed_root(void)
{
	if (chroot(root) != 0)
		puts("not permitted");
	return work(3);	//@ chroot
}

static int no_descriptors(void)
{
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_NOFILE, &none);
	return work(3);	//@ nofile
}

static int all_descriptors(void)
{
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	return work(3);	//@ descriptors
}

static int not_dumpable(void)
{
	prctl(PR_SET_DUMPABLE, 0);
	return work(3);	//@ dumpable
}

static int landlocked(void)
{
	struct landlock_ruleset_attr rules = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE |
				     LANDLOCK_ACCESS_FS_WRITE_FILE |
				     LANDLOCK_ACCESS_FS_READ_DIR,
	};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &rules,
			      sizeof(rules), 0);

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) != 0)
		puts("no Landlock");
	return work(3);	//@ landlock
}

static pthread_t first;

static void *go_on(void *unused)
{
	pthread_join(first, NULL);
	work(3);	//@ left
	exit(3);
	return unused;
}

/* The process's /proc directory belongs to its first thread. */
static int left(void)
{
	pthread_t thread;

	first = pthread_self();
	pthread_create(&thread, NULL, go_on, NULL);
	pthread_exit(NULL);
}

/* --- code that cannot be changed back --- */

static int frozen(void)
{
	prctl(PR_SET_MDWE, 1, 0, 0, 0);
	return work(3);	//@ frozen
}

static int frozen_without_files(void)
{
	struct rlimit none = { 0, 0 };

	prctl(PR_SET_MDWE, 1, 0, 0, 0);
	setrlimit(RLIMIT_NOFILE, &none);
	return work(3);
}

static int frozen_and_locked(void)
{
	mlockall(MCL_CURRENT);
	return frozen_without_files();
}

/* --- all signals are blocked --- */

static sem_t done;

static void on_timer(union sigval value)
{
	sigset_t mask;

	work(value.sival_int);	//@ timer
	/* libc has blocked all signals. */
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	printf("%d %d\n", sigismember(&mask, SIGTRAP), sigismember(&mask, 64));
	sem_post(&done);	//@ timer
}

static int timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD };
	struct itimerspec soon = { { 0, 0 }, { 0, 1000000 } };
	timer_t made;

	sem_init(&done, 0, 0);
	event.sigev_notify_function = on_timer;
	for (int i = 3; i < 6; i++) {
		event.sigev_value.sival_int = i;
		timer_create(CLOCK_MONOTONIC, &event, &made);
		timer_settime(made, 0, &soon, NULL);
		while (sem_wait(&done) != 0)	//@ timer
			;
		timer_delete(made);
	}
	return 0;
}

static int raw_mask(void)
{
	unsigned long all = ~0ul, before = 0, now = 0;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
	work(3);	//@ raw
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &now, 8);
	printf("%lx %lx\n", before, now);
	return 0;
}

static ucontext_t outside, inside;

static void in_context(void)
{
	work(3);	//@ context
	swapcontext(&inside, &outside);
}

static int context(void)
{
	static char stack[65536];

	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = sizeof(stack);
	sigfillset(&inside.uc_sigmask);
	makecontext(&inside, in_context, 0);
	swapcontext(&outside, &inside);
	return work(4);	//@ context
}

static void *in_thread(void *unused)
{
	sigset_t mask;

	work(3);	//@ attribute inherited
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	printf("%d %d\n", sigismember(&mask, SIGTRAP), sigismember(&mask, 64));
	return unused;
}

static int thread_with(int in_attribute)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	if (in_attribute)
		pthread_attr_setsigmask_np(&attributes, &all);
	else
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_create(&thread, &attributes, in_thread, NULL);
	pthread_join(thread, NULL);
	return 0;
}

static int attribute(void)
{
	return thread_with(1);
}

static int inherited(void)
{
	return thread_with(0);
}

/* ... and a handler is running. */
static void on_signal(int signal)
{
	work(signal == SIGUSR1 ? 3 : 0);	//@ masked
}

static int masked(void)
{
	struct sigaction action = { .sa_handler = on_signal }, before;

	sigfillset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR1, NULL, &before);
	printf("%d %d\n", sigismember(&before.sa_mask, SIGTRAP),
	       sigismember(&before.sa_mask, 64));
	raise(SIGUSR1);
	return 0;
}

/* --- the program's own traps --- */

static volatile sig_atomic_t traps;

static void on_trap(int signal)
{
	(void)signal;
	traps++;
}

static void step(void)
{
#ifdef __x86_64__
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "pushfq\n\t"
			 "orq $0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "nop\n\t"
			 "nop\n\t"
			 "pushfq\n\t"
			 "andq $~0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "lea 128(%%rsp), %%rsp" ::
				 : "memory", "cc");
#endif
}

static int stepped(void)
{
	signal(SIGTRAP, on_trap);
	step();	//@ stepped
	printf("%d\n", (int)traps);	//@ stepped
	return work(3);	//@ stepped
}

static const struct {
	const char *name;
	int (*run)(void);
} cases[] = {
	{ "chroot", changed_root },   { "nofile", no_descriptors },
	{ "descriptors", all_descriptors }, { "dumpable", not_dumpable },
	{ "landlock", landlocked },   { "left", left },
	{ "frozen", frozen },	      { "frozen_nofile", frozen_without_files },
	{ "frozen_locked", frozen_and_locked }, { "timer", timer },
	{ "raw", raw_mask },	      { "context", context },
	{ "attribute", attribute },   { "inherited", inherited },
	{ "masked", masked },	      { "stepped", stepped },
};

int main(int count, char **arguments)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	root = count > 2 ? arguments[2] : "/";
	for (size_t i = 0; count > 1 && i < sizeof(cases) / sizeof(*cases); i++)
		if (strcmp(arguments[1], cases[i].name) == 0)
			cases[i].run();
	return 3;
}
