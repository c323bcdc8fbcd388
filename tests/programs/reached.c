/*
 * reached CASE: lines that state when they are reached.  "//@ case case" after a line
 * names the cases that reach it, "//@ *" means all cases and "//@ -" none; lines
 * without a mark are not checked.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int zero, one = 1;
static volatile int handled;

static int choose(int number)
{
	switch (number) {
	case 1:
		return 10;	//@ plain
	case 2:
		return 20;	//@ plain
	default:
		if (number > 100)
			return 30;	//@ -
		return 40;	//@ plain
	}
}

static int never(void)
{
	return zero + 1;	//@ -
}

static int plain(void)
{
	int sum = choose(1) + choose(2) + choose(7);	//@ plain

	for (int i = 0; i < 1000; i++)
		sum += i & one;	//@ plain
	if (zero)
		sum += never();	//@ -
	printf("%d\n", sum);	//@ plain
	return 0;	//@ plain
}

/* --- threads: all reach the same lines at the same time --- */

#define THREADS 8

static pthread_barrier_t barrier;
static int done[THREADS];

#define STEP(n) value = value * 31 + (n); value ^= value >> 3;

static void *run(void *number)
{
	unsigned value = 1;

	pthread_barrier_wait(&barrier);
	STEP(1)		//@ threads
	STEP(2)		//@ threads
	STEP(3)		//@ threads
	STEP(4)		//@ threads
	for (int i = 0; i < 10; i++)
		STEP(i)		//@ threads
	STEP(6)		//@ threads
	done[(long)number] = (int)(value & 0xffff);
	return NULL;	//@ threads
}

static int threads(void)
{
	pthread_t thread[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < THREADS; i++)
		printf("%d\n", done[i]);
	return 0;
}

/* --- signals --- */

static void on_trap(int signal)
{
	handled += signal;	//@ handler blocked generated
}

static void on_trap_info(int signal, siginfo_t *info, void *context)
{
	(void)context;
	handled += signal + (info->si_code == SI_TKILL ? 1000 : 2000);	//@ handler
}

static void on_other(int signal)
{
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	handled += 100 * signal + sigismember(&mask, SIGTRAP);	//@ blocked waiting
}

/* The program has handlers and breakpoints of its own. */
static int handler(void)
{
	struct sigaction action = { .sa_handler = on_trap }, before;

	sigaddset(&action.sa_mask, SIGUSR1);
	sigaction(SIGTRAP, &action, &before);
	printf("%d\n", before.sa_handler == SIG_DFL);
	raise(SIGTRAP);
	printf("%d\n", handled);
#ifdef __x86_64__
	__asm__ volatile("int3");	//@ handler
#else
	raise(SIGTRAP);
#endif
	printf("%d\n", handled);	//@ handler
	sigaction(SIGTRAP, NULL, &before);
	printf("%d %d\n", before.sa_handler == on_trap,
	       sigismember(&before.sa_mask, SIGUSR1));
	action.sa_sigaction = on_trap_info;
	action.sa_flags = SA_SIGINFO | SA_RESETHAND;
	sigaction(SIGTRAP, &action, NULL);
	raise(SIGTRAP);
	sigaction(SIGTRAP, NULL, &before);
	printf("%d %d\n", handled, before.sa_handler == SIG_DFL);
	printf("%d\n", signal(SIGTRAP, SIG_IGN) == SIG_DFL);
	raise(SIGTRAP);
	printf("%d\n", signal(SIGTRAP, on_trap) == SIG_IGN);
	kill(getpid(), SIGTRAP);
	printf("%d\n", handled);	//@ handler
	return 0;
}

static int set_has_trap(int how, const sigset_t *set)
{
	sigset_t before;

	pthread_sigmask(how, set, &before);
	return sigismember(&before, SIGTRAP);
}

/* The program blocks this signal, and all others. */
static int blocked(void)
{
	struct sigaction action = { .sa_handler = on_other };
	sigset_t all, trap;

	sigfillset(&all);
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	printf("%d\n", set_has_trap(SIG_SETMASK, &all));	//@ blocked
	printf("%d\n", set_has_trap(SIG_BLOCK, NULL));	//@ blocked
	printf("%d\n", set_has_trap(SIG_UNBLOCK, &trap));	//@ blocked
	printf("%d\n", set_has_trap(SIG_UNBLOCK, &all));	//@ blocked
	action.sa_mask = all;
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR1, NULL, &action);
	printf("%d\n", sigismember(&action.sa_mask, SIGTRAP));
	raise(SIGUSR1);
	printf("%d\n", handled > 0);	//@ blocked
	/* A pending signal arrives when it is unblocked. */
	signal(SIGTRAP, on_trap);
	handled = 0;
	set_has_trap(SIG_BLOCK, &trap);
	raise(SIGTRAP);
	sigpending(&all);
	printf("%d %d\n", handled, sigismember(&all, SIGTRAP));
	set_has_trap(SIG_UNBLOCK, &trap);
	printf("%d\n", handled);	//@ blocked
	return 0;
}

/* Handlers run while a call waits with all signals blocked. */
static int waiting(void)
{
	struct sigaction action = { .sa_handler = on_other };
	struct timespec moment = { .tv_nsec = 200000000 };
	sigset_t most, usr;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	sigfillset(&most);
	sigdelset(&most, SIGUSR1);
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr, NULL);
	raise(SIGUSR1);
	printf("%d\n", sigsuspend(&most));	//@ waiting
	raise(SIGUSR1);
	printf("%d\n", ppoll(NULL, 0, &moment, &most));	//@ waiting
	raise(SIGUSR1);
	printf("%d\n", pselect(0, NULL, NULL, NULL, &moment, &most));	//@ waiting
	printf("%d\n", handled > 0);	//@ waiting
	return 0;
}

/* The program waits for SIGTRAP alone: coverage of lines ends then. */
static int waits_for_it(void)
{
	sigset_t trap;
	int signal_ = 0;

	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	sigprocmask(SIG_BLOCK, &trap, NULL);	//@ waits_for_it
	kill(getpid(), SIGTRAP);	//@ waits_for_it
	sigwait(&trap, &signal_);	//@ waits_for_it
	printf("%d\n", signal_ == SIGTRAP);	//@ -
	return 0;
}

static int dies_of_it(void)
{
	printf("%d\n", one);	//@ dies_of_it
	fflush(stdout);
	raise(SIGTRAP);	//@ dies_of_it
	return 0;	//@ -
}

/* --- processes --- */

static int in_child(int number)
{
	if (number)
		return number + 1;	//@ forked vforked
	return 0;
}

static int forked(void)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(in_child(3));	//@ forked
	waitpid(child, &status, 0);	//@ forked
	printf("%d\n", WEXITSTATUS(status));	//@ forked
	return 0;
}

static int vforked(void)
{
	int status = 0;
	pid_t child = vfork();

	if (child == 0)
		_exit(in_child(3));	//@ vforked
	waitpid(child, &status, 0);	//@ vforked
	printf("%d\n", WEXITSTATUS(status));	//@ vforked
	return 0;
}

static const char *self;

static int executed(void)
{
	sigset_t trap;

	printf("%d\n", one);	//@ executed
	fflush(stdout);
	execl("/nonexistent", "x", NULL);
	printf("%d\n", errno == ENOENT);	//@ executed
	fflush(stdout);
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	sigprocmask(SIG_BLOCK, &trap, NULL);
	signal(SIGTRAP, SIG_IGN);
	execl(self, self, "after", NULL);
	return 1;	//@ -
}

/* A child inherits the blocked or ignored signal. */
static int after(void)
{
	struct sigaction action;
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);	//@ executed
	sigaction(SIGTRAP, NULL, &action);
	printf("%d %d\n", sigismember(&mask, SIGTRAP),
	       action.sa_handler == SIG_IGN);	//@ executed
	return 0;
}

static int killed(void)
{
	if (one)
		kill(getpid(), SIGKILL);	//@ killed
	return 0;	//@ -
}

static int crashed(void)
{
	volatile int *nothing = (int *)(long)zero;

	*nothing = 1;	//@ crashed
	return 0;	//@ -
}

static sigjmp_buf jump;

static void on_fault(int signal)
{
	(void)signal;
	siglongjmp(jump, 1);	//@ jumped
}

static int jumped(void)
{
	volatile int *nothing = (int *)(long)zero;

	signal(SIGSEGV, on_fault);
	if (sigsetjmp(jump, 1) == 0)
		*nothing = 1;	//@ jumped
	printf("%d\n", one);	//@ jumped
	return 0;
}

/* --- a stack that has no room for a signal --- */

#define SMALL 4096

static ucontext_t outside, inside;

static int use_little(int number)
{
	if (number > 3)
		return number * 2;	//@ small
	return number;	//@ -
}

static void run_inside(void)
{
	volatile char room[1500];

	room[0] = 0;
	handled = use_little(7);	//@ small
	swapcontext(&inside, &outside);
	handled += use_little(8) + room[0];	//@ small
}

static int small(void)
{
	char *stack = mmap(NULL, 3 * SMALL, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t none;

	mprotect(stack + SMALL, SMALL, PROT_READ | PROT_WRITE);
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack + SMALL;
	inside.uc_stack.ss_size = SMALL;
	inside.uc_link = &outside;
	makecontext(&inside, run_inside, 0);
	swapcontext(&outside, &inside);
	swapcontext(&outside, &inside);
	sigaltstack(NULL, &none);
	printf("%d %d\n", handled, none.ss_flags == SS_DISABLE);	//@ small
	return 0;
}

/* --- where lines end --- */

static int confined(void)
{
	printf("%d\n", one);	//@ confined
	fflush(stdout);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);	//@ confined
	if (write(1, "2\n", 2) == 2)
		syscall(SYS_exit, 0);	//@ -
	return 1;
}

#ifdef __x86_64__
/* Not through libc, so shim does not see it. */
static long system_call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall"	//@ sealed
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;	//@ sealed
}

static void seal(void)
{
	static const int allowed[] = { SYS_write, SYS_exit_group,
				       SYS_rt_sigreturn, SYS_rt_sigprocmask };
	enum { COUNT = sizeof(allowed) / sizeof(*allowed) };
	struct sock_filter filter[2 * COUNT + 2];
	struct sock_fprog all = { 2 * COUNT + 2, filter };

	filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	for (int i = 0; i < COUNT; i++) {	//@ sealed
		filter[2 * i + 1] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
		filter[2 * i + 2] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter[2 * COUNT + 1] = (struct sock_filter)BPF_STMT(
		BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);	//@ sealed
	system_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&all);
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;	//@ sealed
}

static int pick(int number)
{
	switch (number) {	//@ sealed
	case 1: return 10;	//@ sealed
	case 2: return 20;	//@ sealed
	case 3: return 40;	//@ sealed
	case 4: return 70;	//@ -
	case 5: return 90;	//@ -
	case 6: return 35;	//@ -
	default: return 0;	//@ -
	}
}

static int climb(int depth, double *sum)
{
	if (depth == 0)	//@ sealed
		return 0;	//@ sealed
	*sum += 1.0 / depth;	//@ sealed
	return 1 + climb(depth - 1, sum);	//@ sealed
}

static void leap(jmp_buf *back, int value)
{
	if (value > 2)	//@ sealed
		longjmp(*back, value);	//@ sealed
	leap(back, value + 1);	//@ sealed
}

static int count_primes(int end)
{
	int primes = 0;	//@ sealed

	for (int i = 2; i < end; i++) {	//@ sealed
		int divisor = 2;	//@ sealed

		while (divisor * divisor <= i && i % divisor != 0)	//@ sealed
			divisor++;	//@ sealed
		if (divisor * divisor > i)	//@ sealed
			primes++;	//@ sealed
	}
	return primes;	//@ sealed
}

/* From here on no code can be written, so all traps stay. */
static int sealed(void)
{
	int numbers[] = { 5, 3, 9, 1, 7 };	//@ sealed
	jmp_buf back;
	double sum = 0;	//@ sealed
	int picked = 0;	//@ sealed
	char text[100];
	int length, depth;

	seal();	//@ sealed
	for (int i = 1; i <= 3; i++)	//@ sealed
		picked += pick(i);	//@ sealed
	depth = climb(20, &sum);	//@ sealed
	qsort(numbers, 5, sizeof(int), compare);	//@ sealed
	length = snprintf(text, sizeof(text), "%d %d %.6f %d%d %d", picked,	//@ sealed
			  depth, sum, numbers[0], numbers[4],
			  count_primes(2000));
	if (setjmp(back) == 0)	//@ sealed
		leap(&back, 0);	//@ sealed
	if (zero < 0)	//@ sealed
		text[0] = 'x';	//@ -
	text[length++] = '\n';	//@ sealed
	system_call(SYS_write, 1, (long)text, length);	//@ sealed
	system_call(SYS_exit_group, 7, 0, 0);	//@ sealed
	return 0;	//@ -
}
#else
static int sealed(void)
{
	return 0;
}
#endif

static int traced(void)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);	//@ traced
		raise(SIGSTOP);	//@ -
		_exit(in_child(6));	//@ -
	}
	waitpid(child, &status, 0);
	printf("%d\n", WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	ptrace(PTRACE_CONT, child, NULL, NULL);
	waitpid(child, &status, 0);
	printf("%d\n", WIFEXITED(status) && WEXITSTATUS(status) == 7);	//@ traced
	return 0;
}

/* --- code outside of files, and data in code --- */

static volatile long made_ran;

#ifdef __x86_64__
/* A jump table among the instructions, as some compilers make it. */
__asm__("	.text\n"
	"	.type in_text, @function\n"
	"in_text:\n"
	"	lea 1f(%rip), %rax\n"
	"	movslq (%rax,%rdi,4), %rdx\n"
	"	add %rdx, %rax\n"
	"	jmp *%rax\n"
	"	.balign 4\n"
	"1:	.long 2f-1b, 3f-1b\n"
	"2:	mov $5, %eax\n"
	"	ret\n"
	"3:	mov $6, %eax\n"
	"	ret\n"
	"	.size in_text, .-in_text\n");
int in_text(long number);

static const unsigned char made[] = {
	0xcc,			/* int3 */
	0xb8, 7, 0, 0, 0,	/* mov $7, %eax */
	0xc3,			/* ret */
};

static int generated(void)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int (*call)(void) = (int (*)(void))code;

	signal(SIGTRAP, on_trap);
	memcpy(code, made, sizeof(made));
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	printf("%d %d\n", call(), handled);	//@ generated
	/* ... and changes the code that it has made. */
	mprotect(code, 4096, PROT_READ | PROT_WRITE);
	code[2] = 9;
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	printf("%d %d\n", call(), handled);	//@ generated
	printf("%d %d\n", in_text(0), in_text(1));	//@ generated
	return 0;
}
#else
static int generated(void)
{
	return 0;
}
#endif

/* --- an object that is loaded and unloaded --- */

static int loaded(void)
{
	const char *path = getenv("REACHED_LIBRARY");

	for (int i = 0; i < 3; i++) {
		void *library = dlopen(path, RTLD_NOW);
		int (*call)(int) = library ? dlsym(library, "library_call") :
					     NULL;

		if (!call)
			return 1;	//@ -
		printf("%d\n", call(i));	//@ loaded
		dlclose(library);
	}
	return 0;	//@ loaded
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*call)(void);
	} cases[] = {
		{ "plain", plain },	    { "threads", threads },
		{ "handler", handler },	    { "blocked", blocked },
		{ "waiting", waiting },	    { "waits_for_it", waits_for_it },
		{ "dies_of_it", dies_of_it },
		{ "forked", forked },	    { "vforked", vforked },
		{ "executed", executed },   { "after", after },
		{ "killed", killed },	    { "crashed", crashed },
		{ "jumped", jumped },	    { "confined", confined },
		{ "sealed", sealed },	    { "traced", traced },	    { "generated", generated },
		{ "loaded", loaded },	    { "small", small },
	};

	self = argv[0];		//@ *
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(*cases); i++)
		if (strcmp(argv[1], cases[i].name) == 0)
			return cases[i].call();	//@ *
	return 2;	//@ -
}
