/*
 * A thread of this process reads /proc and the kernel's event counters of the program
 * at intervals, and appends a line for each number to the recording (see
 * <shim/format.h>).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "private.h"
#include "say.h"

static int program;
static unsigned period;
static const char *directory;
static const bool *has_directory;
static int stop = -1;
static int file = -1;
static int file_error;
static pthread_t reader;
static bool has_reader;

/* Events of the processor without the kernel's code, if they are available and allowed,
 * and events of the kernel itself. */
static struct event {
	uint32_t type;
	uint64_t config;
	const char *name;
	int fd;
} events[] = {
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles", -1 },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions", -1 },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "cache misses", -1 },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, "branch misses",
	  -1 },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES,
	  "context switches", -1 },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS,
	  "changes of processor", -1 },
};

#define EVENTS (sizeof(events) / sizeof(events[0]))

static bool open_file(void)
{
	if (file >= 0 || file_error != 0)
		return file_error == 0;
	if (!__atomic_load_n(has_directory, __ATOMIC_ACQUIRE))
		return false;
	file = private_create(directory, "counters");
	file_error = file < 0 ? -file : 0;
	return file >= 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The text of /proc/PID/@name; "" if it cannot be read. */
static const char *read_file(const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t got = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", program, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, size - 1);
		close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
	return text;
}

static void write_counter(uint64_t time_ns, double value, const char *name)
{
	char line[200];
	int size = snprintf(line, sizeof(line), "%llu %d %.17g %s\n",
			    (unsigned long long)time_ns, program, value, name);

	if (file_error == 0 && write(file, line, (size_t)size) != size)
		file_error = errno != 0 ? errno : ENOSPC;
}

/* Writes the kilobytes after a word of smaps_rollup. */
static void put_memory(uint64_t time_ns, const char *text, const char *word,
		       const char *name)
{
	const char *at = strstr(text, word);

	if (at != NULL)
		write_counter(time_ns, strtod(at + strlen(word), NULL) * 1024,
			      name);
}

/* Reads the third and later fields: the program's name before them may hold
 * anything. */
static void put_times(uint64_t time_ns, const char *text)
{
	static uint64_t last_ns;
	static double last_used;
	unsigned long minor, major, user, system;
	const char *at = strrchr(text, ')');
	double used;

	if (at == NULL ||
	    sscanf(at + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %lu %*u %lu %*u %lu %lu",
		   &minor, &major, &user, &system) != 4)
		return;
	write_counter(time_ns, (double)(minor + major), "page faults");
	used = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	if (last_ns != 0 && time_ns > last_ns)
		write_counter(time_ns,
			      (used - last_used) * 1e9 /
				      (double)(time_ns - last_ns),
			      "processors in use");
	last_ns = time_ns;
	last_used = used;
}

/* Opens the counters of the program, and of all threads and processes that it starts
 * from now on. */
static void open_events(void)
{
	struct perf_event_attr about = {
		.size = sizeof(about),
		.inherit = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	for (size_t i = 0; i < EVENTS; i++) {
		about.type = events[i].type;
		about.config = events[i].config;
		about.exclude_kernel = about.type == PERF_TYPE_HARDWARE;
		about.exclude_hv = about.exclude_kernel;
		events[i].fd = (int)syscall(SYS_perf_event_open, &about,
					    program, -1, -1,
					    PERF_FLAG_FD_CLOEXEC);
	}
}

static void close_events(void)
{
	for (size_t i = 0; i < EVENTS; i++)
		if (events[i].fd >= 0)
			close(events[i].fd);
}

/* An event that was counted for only a part of the time, because other events shared
 * its counter, is left out. */
static void put_events(uint64_t time_ns)
{
	struct {
		uint64_t value, enabled, running;
	} read_now;

	for (size_t i = 0; i < EVENTS; i++)
		if (events[i].fd >= 0 &&
		    read(events[i].fd, &read_now, sizeof(read_now)) ==
			    sizeof(read_now) &&
		    read_now.running == read_now.enabled)
			write_counter(time_ns, (double)read_now.value,
				      events[i].name);
}

static void read_all(void)
{
	static char text[8192];
	uint64_t time_ns = now_ns();

	if (!open_file())
		return;
	read_file("smaps_rollup", text, sizeof(text));
	put_memory(time_ns, text, "\nRss:", "resident bytes");
	put_memory(time_ns, text, "\nPss:", "proportional bytes");
	put_memory(time_ns, text, "\nAnonymous:", "anonymous bytes");
	put_memory(time_ns, text, "\nSwap:", "swapped bytes");
	put_times(time_ns, read_file("stat", text, sizeof(text)));
	put_events(time_ns);
}

static void *read_again_and_again(void *unused)
{
	struct pollfd polled = { stop, POLLIN, 0 };

	while (!(polled.revents & POLLIN)) {
		read_all();
		/* The directory will exist in a moment. */
		poll(&polled, 1, file >= 0 ? (int)period : 1);
	}
	return unused;
}

void counters_begin(int child, unsigned period_ms, const char *where,
		    const bool *is_there)
{
	int r;

	program = child;
	period = period_ms;
	directory = where;
	has_directory = is_there;
	open_events();
	stop = eventfd(0, EFD_CLOEXEC);
	r = stop < 0 ?
		    errno :
		    pthread_create(&reader, NULL, read_again_and_again, NULL);
	has_reader = r == 0;
	if (r != 0)
		say("--counters: %s; the program runs without", strerror(r));
}

void counters_end(bool is_wanted)
{
	uint64_t one = 1;

	if (!has_reader || write(stop, &one, sizeof(one)) != sizeof(one))
		return;
	pthread_join(reader, NULL);
	close_events();
	if (file >= 0)
		close(file);
	if (is_wanted && file_error != 0)
		say("%s/counters: cannot be written: %s", directory,
		    private_error(-file_error));
}

void counters_remove(void)
{
	if (file >= 0)
		private_remove(directory, "counters");
}
