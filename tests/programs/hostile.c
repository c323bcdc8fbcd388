/*
 * hostile CASE - a program that leaves little room for a profiler in its process.  It
 * prints the result, and ends with status 3 or as the case says.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define QUIET __attribute__((no_instrument_function))
#define APART __attribute__((noinline))

static volatile int sink;
static volatile int ticks;

APART static int leaf(int n)
{
	return 3 * n + sink;
}

APART static int work(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += leaf(i);
	return sum;
}

static void every(int signal, void (*handler)(int), long period_us)
{
	struct sigaction action = { .sa_handler = handler,
				    .sa_flags = SA_RESTART };
	struct itimerval timer = { { 0, period_us }, { 0, period_us } };

	sigaction(signal, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void stop_ticks(void)
{
	struct itimerval none = { { 0, 0 }, { 0, 0 } };

	setitimer(ITIMER_REAL, &none, NULL);
}

/* --- processes --- */

static void fork_one(int signal)
{
	int status = 0, before = errno;
	pid_t child;

	(void)signal;
	if (ticks >= 20)
		return;
	child = fork();
	if (child == 0)
		_exit(work(3));
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 9)
		sink++;
	ticks++;
	errno = before;
}

static int handler_that_forks(void)
{
	every(SIGALRM, fork_one, 1000);
	while (ticks < 20)
		work(100);
	stop_ticks();
	return sink;
}

static int generations(void)
{
	int status = 0, left = 12;
	pid_t child;

	while (left > 0 && (child = fork()) == 0)
		left--;
	if (left == 0)
		_exit(work(3));
	waitpid(child, &status, 0);
	if (left < 12)
		_exit(WEXITSTATUS(status));
	return WEXITSTATUS(status);
}

static int vforks(void)
{
	int sum = 0;

	for (int i = 0; i < 20; i++) {
		int status = 0;
		pid_t child = vfork();

		if (child == 0) {
			leaf(1);
			_exit(7);
		}
		waitpid(child, &status, 0);
		sum += WEXITSTATUS(status);
	}
	return sum;
}

/* --- signals --- */

static void count(union sigval value)
{
	(void)value;
	work(10);
	__atomic_add_fetch(&ticks, 1, __ATOMIC_SEQ_CST);
}

static int callbacks(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD,
				  .sigev_notify_function = count };
	struct itimerspec period = { { 0, 2000000 }, { 0, 2000000 } };
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
		return -1;
	timer_settime(timer, 0, &period, NULL);
	while (ticks < 10)
		work(100);
	timer_delete(timer);
	return work(10);
}

static int all_blocked(void)
{
	unsigned long all = ~0ul, mask = 0;
	sigset_t full, seen;

	sigfillset(&full);
	sigprocmask(SIG_SETMASK, &full, NULL);
	work(100);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
	work(100);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &mask, 8);
	sigprocmask(SIG_SETMASK, NULL, &seen);
	printf("%lx %d %d\n", mask, sigismember(&seen, SIGTRAP),
	       sigismember(&seen, SIGRTMAX));
	return work(10);
}

static sigjmp_buf again;

static void jump(int signal)
{
	siglongjmp(again, signal);
}

static int faults(void)
{
	struct sigaction action = { .sa_handler = jump };
	volatile int faulted = 0;

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGTRAP, &action, NULL);
	for (volatile int i = 0; i < 100; i++) {
		if (sigsetjmp(again, 1) == 0) {
			work(3);
			if (i % 2)
				raise(SIGTRAP);
			else
				*(volatile int *)(uintptr_t)sink = 1;
		} else {
			faulted++;
		}
	}
	return faulted;
}

/* --- stacks --- */

static ucontext_t fibers[3];
static volatile int current, switches;

/* The signal may arrive anywhere, also in a hook. */
static void preempt(int signal)
{
	int from = current;

	(void)signal;
	switches++;
	current = (from + 1) % 3;
	swapcontext(&fibers[from], &fibers[current]);
}

static void spin(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	for (;;)
		work(5);
}

static int preempted_fibers(void)
{
	for (int i = 1; i < 3; i++) {
		getcontext(&fibers[i]);
		/* libc sets the mask before it leaves the stack. */
		sigaddset(&fibers[i].uc_sigmask, SIGALRM);
		fibers[i].uc_stack.ss_sp = malloc(65536);
		fibers[i].uc_stack.ss_size = 65536;
		makecontext(&fibers[i], spin, 0);
	}
	every(SIGALRM, preempt, 500);
	while (switches < 300)
		work(5);
	stop_ticks();
	return work(10);
}

static void *run_deep(void *unused)
{
	(void)unused;
	sink = work(20) * 0;
	return NULL;
}

static int smallest_stacks(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384);
	for (int i = 0; i < 50; i++) {
		if (pthread_create(&thread, &attributes, run_deep, NULL) != 0)
			return -1;
		pthread_join(thread, NULL);
	}
	return work(10);
}

#ifdef __x86_64__
/* Calls @function with @left bytes of stack left, and a guard page below them. */
QUIET static void call_with(size_t left, void (*function)(void))
{
	char *memory = mmap(NULL, 3 << 12, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(memory, 1 << 12, PROT_NONE);
	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\t"
			 "call *%1\n\tmov %%rbx, %%rsp"
			 :
			 : "r"(memory + (1 << 12) + left), "r"(function)
			 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9",
			   "r10", "r11", "memory", "cc");
}
#else
QUIET static void call_with(size_t left, void (*function)(void))
{
	(void)left;
	function();
}
#endif

APART static void add_leaf(void)
{
	sink += 1;
}

APART static void add_twice(void)
{
	add_leaf();
	add_leaf();
}

static int little_left(void)
{
	add_twice();
	for (int i = 0; i < 5; i++)
		call_with(512, add_twice);
	return sink;
}

#ifdef __x86_64__
#include <asm/prctl.h>

/* Another thread pointer: libc's and shim's data of the thread are elsewhere
 * meanwhile. */
static int other_pointer(void)
{
	static char memory[1 << 16];
	unsigned long before = 0;

	work(10);
	for (int i = 0; i < 3; i++) {
		syscall(SYS_arch_prctl, ARCH_GET_FS, &before);
		syscall(SYS_arch_prctl, ARCH_SET_FS, memory + (1 << 15));
		work(10);
		syscall(SYS_arch_prctl, ARCH_SET_FS, memory + (1 << 14));
		work(10);
		syscall(SYS_arch_prctl, ARCH_SET_FS, before);
		work(10);
	}
	return work(10);
}
#else
static int other_pointer(void)
{
	return work(10);
}
#endif

/* --- resources that the program gives up --- */

static int no_descriptors(void)
{
	struct rlimit few = { 20, 20 };

	syscall(SYS_close_range, 3, ~0u, 0);
	if (setrlimit(RLIMIT_NOFILE, &few) < 0)
		return -1;
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	return work(100);
}

static int no_directory(void)
{
	char path[] = "../hostile.XXXXXX";

	if (!mkdtemp(path) || chdir(path) < 0 || rmdir(path) < 0)
		return -1;
	return work(100);
}

static int no_files(void)
{
	struct rlimit none = { 0, 0 };

	signal(SIGXFSZ, SIG_DFL);
	if (setrlimit(RLIMIT_FSIZE, &none) < 0)
		return -1;
	return work(100);
}

static int no_memory(void)
{
	struct rlimit little = { 1 << 20, 1 << 20 };
	int result;

	setrlimit(RLIMIT_AS, &little);
	result = work(100);
	return mmap(NULL, 1 << 22, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) == MAP_FAILED ?
		       result :
		       -1;
}

static int no_rights(void)
{
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return work(100);
}

static int no_environment(void)
{
	clearenv();
	return work(100);
}

/* --- ends --- */

static int ends_by_abort(void)
{
	work(100);
	fflush(stdout);
	abort();
}

static int ends_by_signal(void)
{
	work(100);
	fflush(stdout);
	kill(getpid(), SIGKILL);
	return 0;
}

static void *end_later(void *first)
{
	pthread_join(*(pthread_t *)first, NULL);
	printf("%d\n", work(10));
	exit(3);
}

static int first_thread_ends(void)
{
	static pthread_t first;
	pthread_t thread;

	first = pthread_self();
	pthread_create(&thread, NULL, end_later, &first);
	pthread_exit(NULL);
}

static int exits_at_once(void)
{
	work(100);
	fflush(stdout);
	syscall(SYS_exit_group, 3);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} cases[] = {
	{ "handler_that_forks", handler_that_forks },
	{ "generations", generations },
	{ "vforks", vforks },
	{ "callbacks", callbacks },
	{ "all_blocked", all_blocked },
	{ "faults", faults },
	{ "preempted_fibers", preempted_fibers },
	{ "smallest_stacks", smallest_stacks },
	{ "little_left", little_left },
	{ "other_pointer", other_pointer },
	{ "no_descriptors", no_descriptors },
	{ "no_directory", no_directory },
	{ "no_files", no_files },
	{ "no_memory", no_memory },
	{ "no_rights", no_rights },
	{ "no_environment", no_environment },
	{ "ends_by_abort", ends_by_abort },
	{ "ends_by_signal", ends_by_signal },
	{ "first_thread_ends", first_thread_ends },
	{ "exits_at_once", exits_at_once },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argc == 2 && strcmp(argv[1], cases[i].name) == 0) {
			printf("%d\n", cases[i].run());
			return 3;
		}
		if (argc == 1)
			puts(cases[i].name);
	}
	return argc == 1 ? 0 : 2;
}
