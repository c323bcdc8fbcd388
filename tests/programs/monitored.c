/*
 * Calls monitor(3) as its arguments say, word by word, and prints the results: "WORD
 * RESULT ERRNO".  It makes its own samples (monitor_hits), so that sums are exact.
 * Compiled without instrumentation.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <shim/compat/mon.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Only libshim.so has them. */
#pragma weak monitor
#pragma weak monitor_signal
#pragma weak monitor_hits
#pragma weak monstartup
#pragma weak moncontrol

#define KEPT 4711	/* errno before a call; printed as 0, and 0 as this */

static volatile unsigned long work;

#define FUNCTION(name)                                                         \
	__attribute__((noinline, aligned(64))) void name(void);                \
	void name(void)                                                        \
	{                                                                      \
		for (int i = 0; i < 100; i++)                                  \
			work += (unsigned long)i;                              \
	}

FUNCTION(first)
FUNCTION(second)
FUNCTION(third)
FUNCTION(last)

static void *opened;

static char *code(const char *name)
{
	static char *before;
	void *library;

	if (!strcmp(name, "first"))
		return (char *)first;
	if (!strcmp(name, "second"))
		return (char *)second;
	if (!strcmp(name, "third"))
		return (char *)third;
	if (!strcmp(name, "last"))
		return (char *)last;
	if (!strcmp(name, "0"))
		return NULL;
	if (!strcmp(name, "heap"))
		return malloc(65536);
	if (!strcmp(name, "heap+"))
		return (char *)malloc(65536) + 4096;
	if (!strcmp(name, "data"))
		return (char *)&work;
	if (!strcmp(name, "data+"))
		return (char *)&work + 8;
	if (!strcmp(name, "before"))
		return before;
	library = dlopen(NULL, RTLD_NOW);
	before = dlsym(library, name);
	return before;
}

static void hit(const char *name, unsigned count)
{
	monitor_hits(code(name), count);
}

/* Reads a function's name and a number after colons. */
static unsigned number_after(char *text, char **rest)
{
	char *colon = strchr(text, ':');

	*rest = NULL;
	if (!colon)
		return 0;
	*colon = '\0';
	return (unsigned)strtoul(colon + 1, rest, 0);
}

static int result;

static void burn(unsigned time_ms)
{
	struct timespec now;
	double begin;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	begin = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
	do {
		for (int i = 0; i < 10000; i++)
			first();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while ((double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6 <
		 begin + time_ms);
}

/* --- threads --- */

static unsigned thread_hits;
static pthread_barrier_t barrier;

static void *count(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < thread_hits; i++)
		monitor_hits((char *)(i & 1 ? first : second), 1);
	return NULL;
}

/* Each dump gets a file of its own; otherwise the next one would replace it. */
static void dump(unsigned i)
{
	char name[32];

	raise(SIGUSR1);
	snprintf(name, sizeof(name), "dump.%u", i);
	rename("gmon.out", name);
	usleep(500);	/* lets the other threads go on */
}

/* @how: '!' sends signals to all threads meanwhile; with '@' the main thread dumps. */
static void run_threads(unsigned threads, char how)
{
	pthread_t thread[64];

	pthread_barrier_init(&barrier, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, count, NULL);
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; how == '!' && i < 1000; i++)
		kill(getpid(), SIGUSR1);
	for (unsigned i = 0; how == '@' && i < 100; i++)
		dump(i);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
}

/* Thread 0 comes first and is the last to begin: it makes 1 hit, the next thread 2. */
static pthread_barrier_t all_there;
static unsigned turn;

static void *count_in_turn(void *argument)
{
	unsigned self = (unsigned)(unsigned long)argument;

	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&all_there);
	while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != self)
		usleep(100);
	monstartup((char *)first, (char *)last);
	monitor_hits((char *)first, self + 1);
	__atomic_store_n(&turn, self - 1, __ATOMIC_RELEASE);
	return NULL;
}

static void run_in_turn(unsigned threads)
{
	pthread_t thread[8];

	pthread_barrier_init(&all_there, NULL, threads);
	pthread_barrier_init(&barrier, NULL, 2);
	turn = threads - 1;
	for (unsigned long i = 0; i < threads; i++) {
		pthread_create(&thread[i], NULL, count_in_turn, (void *)i);
		pthread_barrier_wait(&barrier);
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
}

/* The result of a system call that SIGUSR1 interrupts. */
static int read_interrupted(void)
{
	char byte;
	int ends[2], r;

	if (pipe(ends) < 0)
		return -2;
	if (fork() == 0) {
		usleep(50000);
		kill(getppid(), SIGUSR1);
		usleep(50000);
		_exit(write(ends[1], "x", 1) != 1);
	}
	r = (int)read(ends[0], &byte, 1);
	wait(NULL);
	return r;
}

/* --- the program's own memory --- */

#define GUARDED 4096

/* @size bytes that end at an inaccessible page. */
static char *guarded(size_t size)
{
	char *pages = mmap(NULL, 256 * GUARDED, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(pages + 255 * GUARDED, GUARDED, PROT_NONE);
	return pages + 255 * GUARDED - size;
}

static unsigned short *shorts;
static size_t shorts_size;
static struct monitor_args ranges[3];

/* LOW:HIGH:SIZE */
static void traditional(char *text)
{
	char *low = strtok(text, ":"), *high = strtok(NULL, ":");

	shorts_size = strtoul(strtok(NULL, ":"), NULL, 0);
	shorts = (unsigned short *)guarded(
		shorts_size < 100000 ? shorts_size : 100000);
	result = monitor(code(low), code(high), shorts, shorts_size, 77);
}

static void print_shorts(void)
{
	unsigned sum = 0, most = 0;

	for (size_t i = 0; i < shorts_size / 2; i++) {
		sum += shorts[i];
		most = shorts[i] > most ? shorts[i] : most;
	}
	printf("shorts %u %u\n", sum, most);
}

static void extended(const char *how)
{
	static unsigned counters[3][16];
	char *low[] = { (char *)first, (char *)second, (char *)third };
	char *high = NULL;
	size_t number = 3, flags = 0;

	for (int i = 0; i < 3; i++)
		ranges[i] = (struct monitor_args){ low[i], low[i] + 64,
						   counters[i], 64 };
	if (!strcmp(how, "overlap"))
		ranges[1].lowpc = low[0] + 16;
	if (!strcmp(how, "heap"))
		ranges[2].lowpc = malloc(64),
		ranges[2].highpc = ranges[2].lowpc + 64;
	if (!strcmp(how, "high"))
		high = low[2];
	if (!strcmp(how, "flags"))
		flags = 1;
	if (!strcmp(how, "none"))
		number = 0;
	if (!strcmp(how, "null"))
		ranges[0].buffer = NULL;
	result = strcmp(how, "nowhere") ?
			 monitor(-1, high, ranges, number, flags) :
			 monitor(-1, high, NULL, number, flags);
}

static void print_ranges(void)
{
	for (int i = 0; i < 3; i++) {
		unsigned sum = 0;

		for (int n = 0; n < 16; n++)
			sum += ranges[i].buffer[n];
		printf("range %s %u\n",
		       ranges[i].lowpc == (char *)first  ? "first" :
		       ranges[i].lowpc == (char *)second ? "second" :
							   "third",
		       sum);
	}
}

/* --- processes --- */

static void on_fork_signal(int signal)
{
	(void)signal;
	if (fork() == 0) {
		hit("third", 5);
		_exit(0);
	}
	wait(NULL);
}

static void limit_memory(void)
{
	struct rlimit limit = { 0, 0 };
	char line[256];
	FILE *maps = fopen("/proc/self/statm", "r");

	/* Writes the existing content, and a little more. */
	if (maps && fgets(line, sizeof(line), maps))
		limit.rlim_cur = limit.rlim_max =
			strtoul(line, NULL, 10) * 4096 + 4096;
	setrlimit(RLIMIT_AS, &limit);
	if (maps)
		fclose(maps);
}

static void limit_files(unsigned size)
{
	struct rlimit limit = { size, size };

	setrlimit(RLIMIT_FSIZE, &limit);
}

/* The result of the filter does not matter. */
static int restrict_calls(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K,
					    SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &allow };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction action = { .sa_flags = SA_RESTART };

	action.sa_handler = handler;
	sigaction(signal, &action, NULL);
}

static char *value_of(char *word)
{
	char *equals = strchr(word, '=');

	if (!equals)
		return NULL;
	*equals = '\0';
	return equals + 1;
}

struct start {
	char *low, *high;
	int result, error;
};

static void *start_other(void *argument)
{
	struct start *start = argument;

	errno = KEPT;
	start->result = monstartup(start->low, start->high);
	start->error = errno;
	return NULL;
}

/* Runs in a thread of its own. */
static void start_beside(char *value)
{
	struct start start = { .high = strchr(value, ':') };
	pthread_t thread;

	*start.high++ = '\0';
	start.low = code(value);
	start.high = code(start.high);
	pthread_create(&thread, NULL, start_other, &start);
	pthread_join(thread, NULL);
	result = start.result;
	errno = start.error;
}

static bool do_monitor(const char *verb, char *value)
{
	char *high;

	if (!strcmp(verb, "start")) {
		high = strchr(value, ':');
		*high++ = '\0';
		result = monstartup(code(value), code(high));
	} else if (!strcmp(verb, "start_beside")) {
		start_beside(value);
	} else if (!strcmp(verb, "stop")) {
		result = monitor(0, 1, (char *)1, 1, 1);
	} else if (!strcmp(verb, "control")) {
		result = moncontrol(atoi(value));
	} else if (!strcmp(verb, "write")) {
		monitor_signal(0);
	} else if (!strcmp(verb, "handler")) {
		handle(SIGUSR1, monitor_signal);
	} else if (!strcmp(verb, "traditional")) {
		traditional(value);
	} else if (!strcmp(verb, "shorts")) {
		print_shorts();
	} else if (!strcmp(verb, "extended")) {
		extended(value);
	} else if (!strcmp(verb, "ranges")) {
		print_ranges();
	} else {
		return false;
	}
	return true;
}

/* Puts a link where the file is written before it gets its name. */
static int plant(const char *victim)
{
	char name[64];

	snprintf(name, sizeof(name), "gmon.out.new.%d", (int)getpid());
	return symlink(victim, name);
}

static bool do_process(const char *verb, char *value)
{
	char *rest;
	unsigned number;

	if (!strcmp(verb, "raise")) {
		raise(SIGUSR1);
	} else if (!strcmp(verb, "rename")) {
		rest = strchr(value, ':');
		*rest++ = '\0';
		result = rename(value, rest);
	} else if (!strcmp(verb, "fork")) {
		if (fork() == 0) {
			hit("second", (unsigned)atoi(value));
			exit(0);
		}
		wait(NULL);
	} else if (!strcmp(verb, "fork_in_handler")) {
		handle(SIGUSR2, on_fork_signal);
		raise(SIGUSR2);
	} else if (!strcmp(verb, "exec")) {
		fflush(stdout);
		execl("/proc/self/exe", "monitored", value, NULL);
	} else if (!strcmp(verb, "vfork")) {
		if (vfork() == 0) {
			if (!value)
				execl("/bin/true", "true", NULL);
			_exit(1);
		}
		wait(NULL);
	} else if (!strcmp(verb, "raw_fork")) {
		if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0)
			exit(0);
		wait(NULL);
	} else if (!strcmp(verb, "no_exec")) {
		result = execl("/no/such/program", "program", NULL);
	} else if (!strcmp(verb, "threads")) {
		number = number_after(value, &rest);
		thread_hits = number;
		run_threads((unsigned)atoi(value), *rest);
	} else if (!strcmp(verb, "in_turn")) {
		run_in_turn((unsigned)atoi(value));
	} else if (!strcmp(verb, "read")) {
		result = read_interrupted();
	} else if (!strcmp(verb, "open")) {
		opened = dlopen(value, RTLD_NOW | RTLD_GLOBAL);
		result = opened ? 0 : -1;
	} else if (!strcmp(verb, "close")) {
		result = dlclose(opened);
	} else if (!strcmp(verb, "plant")) {
		result = plant(value);
	} else if (!strcmp(verb, "ignore")) {
		handle(SIGUSR1, SIG_IGN);
	} else if (!strcmp(verb, "memory")) {
		limit_memory();
	} else if (!strcmp(verb, "files")) {
		limit_files((unsigned)atoi(value));
	} else if (!strcmp(verb, "chdir")) {
		result = chdir(value);
	} else if (!strcmp(verb, "setenv")) {
		rest = strchr(value, ':');
		*rest++ = '\0';
		setenv(value, rest, 1);
	} else if (!strcmp(verb, "seccomp")) {
		result = restrict_calls();
	} else if (!strcmp(verb, "abort")) {
		abort();
	} else if (!strcmp(verb, "kill")) {
		kill(getpid(), SIGKILL);
	} else if (!strcmp(verb, "crash")) {
		raise(SIGSEGV);
	} else {
		return false;
	}
	return true;
}

int main(int argc, char *argv[])
{
	setvbuf(stdout, NULL, _IOLBF, 1024);
	for (int i = 1; i < argc; i++) {
		char *verb = argv[i], *value = value_of(verb), *rest;

		errno = KEPT;
		result = 0;
		if (!strcmp(verb, "hit")) {
			unsigned number = number_after(value, &rest);

			hit(value, number);
		} else if (!strcmp(verb, "burn")) {
			burn((unsigned)atoi(value));
		} else if (!do_monitor(verb, value) &&
			   !do_process(verb, value)) {
			return 2;
		}
		printf("%s %d %d\n", verb, result, errno == KEPT ? 0 : errno ? errno : KEPT);
	}
	return 7;
}
