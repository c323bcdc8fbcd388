/*
 * A library that tests/bench/toggle preloads beside libshim.
 *
 * TOGGLE_LOG=FILE   a thread stops and starts all calls for as long as the
 *                   program runs; the file gets how often and how long it took.
 *                   Only in TOGGLE_PROGRAM=NAME, not in its shell
 * TOGGLE_DUMP=FILE  stops all calls once, writes the program's code as it is
 *                   then, each byte where it has it in its own file, and exits
 * TOGGLE_OFF=1      stops all calls before main, for good
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The script reads this at any time and after any kind of end. */
struct log {
	uint64_t toggles;
	uint64_t first_ns, total_ns, min_ns, max_ns;
};

static int (*stop)(void), (*start)(void);

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void *toggle(void *argument)
{
	struct log *log = argument;

	for (;;) {
		uint64_t begin = now(), spent;

		if ((log->toggles % 2 ? start : stop)() != 0)
			return NULL;
		spent = now() - begin;
		if (log->toggles == 0)
			log->first_ns = spent;
		else if (log->min_ns == 0 || spent < log->min_ns)
			log->min_ns = spent;
		if (spent > log->max_ns)
			log->max_ns = spent;
		log->total_ns += spent;
		log->toggles++;
		/* This gives the program its share of the processors, and
		 * varies the time during which hooks run. */
		usleep(log->toggles % 7 * 40);
	}
}

static void begin_toggling(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct log *log;
	pthread_t thread;
	sigset_t all, before;

	if (fd < 0 || ftruncate(fd, sizeof(*log)) != 0)
		abort();
	log = mmap(NULL, sizeof(*log), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   0);
	close(fd);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (pthread_create(&thread, NULL, toggle, log) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void dump(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096], self[4096] = "";
	unsigned long low, high, offset;
	char execute;
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (fd < 0 || !maps || size < 0 || stop() != 0)
		_exit(3);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, self) &&
		    sscanf(line, "%lx-%lx %*c%*c%c%*c %lx", &low, &high,
			   &execute, &offset) == 4 &&
		    execute == 'x' &&
		    pwrite(fd, (void *)low, high - low, (off_t)offset) !=
			    (ssize_t)(high - low))
			_exit(4);
	_exit(0);
}

__attribute__((constructor)) static void begin(void)
{
	const char *log = getenv("TOGGLE_LOG"), *file = getenv("TOGGLE_DUMP");
	const char *program = getenv("TOGGLE_PROGRAM");

	stop = (int (*)(void))dlsym(RTLD_DEFAULT, "shim_hooks_disable");
	start = (int (*)(void))dlsym(RTLD_DEFAULT, "shim_hooks_enable");
	if (!stop || !start)
		return;
	if (getenv("TOGGLE_OFF"))
		stop();
	else if (file)
		dump(file);
	else if (log && program &&
		 strcmp(program, program_invocation_short_name) == 0)
		begin_toggling(log);
}
