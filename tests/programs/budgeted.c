/*
 * budgeted MODE FILE - hard cases of a budget: what is counted at its calls must stay
 * exact, and what stays on as well.  Each process says how often each function was
 * called; the calls of the first one are also in the mapped FILE, for a test that kills
 * it.
 *
 * forbidden	code may not be written
 * full		code cannot be written for a while, because there are no descriptors
 * thread	a second thread begins while functions are counted
 * fork		children of children begin while functions are counted
 * forever	until it is killed, with a storm of signals
 * own_signal	another process sends the sampler's signal all the time
 * library LIB1 LIB2	libraries are unloaded while their functions are counted
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
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
#include <unistd.h>

#define PLAIN \
	__attribute__((no_instrument_function, patchable_function_entry(0, 0)))
#define NOINLINE __attribute__((noinline))

#define NAMES(X) \
	X(leaf) X(inlined) X(outer) X(later) X(handler) X(work) X(library_leaf)

enum {
#define NUMBER(name) NUMBER_##name,
	NAMES(NUMBER) NUMBERS
};

static unsigned long own_counts[NUMBERS];
static unsigned long *counts = own_counts;
static volatile int sink;

#define CALLED(name) \
	__atomic_add_fetch(&counts[NUMBER_##name], 1, __ATOMIC_RELAXED)

PLAIN static void spin(void)
{
	for (int i = 0; i < 40; i++)
		__asm__ volatile("" ::: "memory");
}

NOINLINE void leaf(void);
void leaf(void)
{
	CALLED(leaf);
	spin();
}

static inline __attribute__((always_inline)) void inlined(void)
{
	CALLED(inlined);
	spin();
}

NOINLINE static void outer(void)
{
	CALLED(outer);
	for (int i = 0; i < 2000; i++) {
		leaf();
		inlined();
	}
}

/* Has a call site of inlined that nobody knows before. */
NOINLINE static void later(void)
{
	CALLED(later);
	for (int i = 0; i < 2000; i++) {
		inlined();
		leaf();
	}
}

NOINLINE static void handler(int number)
{
	CALLED(handler);
	sink = number;
	leaf();
}

PLAIN static long now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

PLAIN static void call_for(void (*function)(void), long ms)
{
	long end = now_ms() + ms;

	while (now_ms() < end)
		function();
}

NOINLINE static void *work(void *unused)
{
	CALLED(work);
	call_for(outer, 60);
	call_for(later, 60);
	return unused;
}

PLAIN static void tell(void)
{
	char text[2000];
	int n = 0;

#define TELL(name) \
	n += snprintf(text + n, sizeof(text) - (size_t)n, \
		      "process %d calls %s %lu\n", (int)getpid(), #name, \
		      counts[NUMBER_##name]);
	NAMES(TELL)
	if (write(1, text, (size_t)n) != n)
		_exit(1);
}

PLAIN static long call_directly(long number, long a, long b, long c)
{
#ifdef __x86_64__
	register long d __asm__("r10") = 0;
	register long e __asm__("r8") = 0;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d), "r"(e)
			 : "rcx", "r11", "memory");
	return result;
#else
	return syscall(number, a, b, c, 0, 0);
#endif
}

PLAIN static void forbid(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]),
				      filter };

	/* shim is not told, as if the process had begun with this filter. */
	if (call_directly(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0) != 0 ||
	    call_directly(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
			  (long)&program) != 0)
		_exit(77);
}

PLAIN static void fork_and(void (*child)(int), int depth)
{
	fflush(stdout);
	if (fork() == 0) {
		static unsigned long none[NUMBERS];

		memset(none, 0, sizeof(none));
		counts = none;
		child(depth);
		tell();
		_exit(0);
	}
	call_for(outer, 30);
	wait(NULL);
}

PLAIN static void be_child(int depth)
{
	call_for(outer, 60);
	if (depth > 0)
		fork_and(be_child, depth - 1);
	call_for(later, 60);
}

/* shim looks at all images when a library is loaded. */
PLAIN static void be_child_with_library(int depth)
{
	call_for(outer, 20);
	if (!dlopen("libutil.so.1", RTLD_NOW) && !dlopen("libm.so.6", RTLD_NOW))
		_exit(2);
	be_child(depth);
}

PLAIN static void use_all_descriptors(void)
{
	struct rlimit limit = { 64, 64 };
	int fd, first = -1, last = -1;

	setrlimit(RLIMIT_NOFILE, &limit);
	while ((fd = open("/dev/null", O_RDONLY)) >= 0) {
		first = first < 0 ? fd : first;
		last = fd;
	}
	call_for(outer, 60);
	for (fd = first; fd <= last; fd++)
		close(fd);
}

PLAIN static void storm(void)
{
	struct itimerval often = { { 0, 100 }, { 0, 100 } };
	struct sigaction action = { .sa_handler = handler,
				    .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

PLAIN static void *return_at_once(void *unused)
{
	return unused;
}

/* The signal of setuid in threads, which the sampler shares.  libc ignores it if another
 * process sends it, as soon as there was a thread. */
#define OWN_SIGNAL 33

PLAIN static void storm_of_own_signals(void)
{
	pid_t parent = getpid(), child;
	pthread_t thread;

	pthread_create(&thread, NULL, return_at_once, NULL);
	pthread_join(thread, NULL);
	child = fork();
	while (child == 0) {
		if (getppid() != parent)
			_exit(0);
		for (int i = 0; i < 20; i++)
			kill(parent, OWN_SIGNAL);
		/* Without a pause the parent does nothing but handle them. */
		usleep(200);
	}
	call_for(outer, 300);
	call_for(later, 60);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

PLAIN static void use_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*calls)(unsigned long *, int);
	long end = now_ms() + 80;

	if (!library)
		_exit(2);
	*(void **)&calls = dlsym(library, "library_calls");
	printf("library at %p\n", *(void **)&calls);
	while (now_ms() < end)
		calls(&counts[NUMBER_library_leaf], 2000);
	dlclose(library);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (argc > 2 && strcmp(mode, "library") != 0) {
		int fd = open(argv[2], O_RDWR);

		counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			      fd, 0);
		if (counts == MAP_FAILED)
			return 2;
	}
	if (strcmp(mode, "forbidden") == 0)
		forbid();
	if (strcmp(mode, "full") == 0) {
		use_all_descriptors();
		call_for(outer, 30);
		fork_and(be_child_with_library, 0);
	}
	if (strcmp(mode, "forever") == 0) {
		storm();
		for (;;)
			call_for(outer, 100);
	}
	for (int i = 0; strcmp(mode, "library") == 0 && i < 4; i++) {
		use_library(argv[2 + i % 2]);
		call_for(outer, 30);
	}
	if (strcmp(mode, "library") != 0)
		call_for(outer, 100);
	if (strcmp(mode, "thread") == 0) {
		pthread_t thread;

		pthread_create(&thread, NULL, work, NULL);
		call_for(outer, 100);
		call_for(later, 60);
		pthread_join(thread, NULL);
	}
	if (strcmp(mode, "own_signal") == 0)
		storm_of_own_signals();
	if (strcmp(mode, "fork") == 0)
		fork_and(be_child, 2);
	if (strcmp(mode, "forbidden") == 0)
		call_for(later, 60);
	fflush(stdout);
	tell();
	return 0;
}
