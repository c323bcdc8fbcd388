/*
 * A thread of this process reads what /proc says of the program, from time to time,
 * and appends a line for each number to the recording (see <shim/format.h>).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
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

static bool open_file(void)
{
	char path[PATH_MAX + 16];

	if (file >= 0 || file_error != 0)
		return file_error == 0;
	if (!__atomic_load_n(has_directory, __ATOMIC_ACQUIRE))
		return false;
	snprintf(path, sizeof(path), "%s/counters", directory);
	file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	file_error = file < 0 ? errno : 0;
	if (file >= 0)
		fchmod(file, 0600);
	return file >= 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The text of /proc/PID/@name; "" where it cannot be read. */
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

static void put(uint64_t time_ns, double value, const char *name)
{
	char line[200];
	int size = snprintf(line, sizeof(line), "%llu %d %.17g %s\n",
			    (unsigned long long)time_ns, program, value, name);

	if (file_error == 0 && write(file, line, (size_t)size) != size)
		file_error = errno != 0 ? errno : ENOSPC;
}

/* Kilobytes behind a word of smaps_rollup. */
static void put_memory(uint64_t time_ns, const char *text, const char *word,
		       const char *name)
{
	const char *at = strstr(text, word);

	if (at != NULL)
		put(time_ns, strtod(at + strlen(word), NULL) * 1024, name);
}

/* What is behind the name of the program, which may hold anything: from the
 * third field on. */
static void put_times(uint64_t time_ns, const char *text)
{
	static uint64_t last_ns;
	static double last_used;
	unsigned long minor, major, user, system;
	const char *at = strrchr(text, ')');
	double used;

	if (at == NULL ||
	    sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %lu %*u %lu %*u %lu %lu",
		   &minor, &major, &user, &system) != 4)
		return;
	put(time_ns, (double)(minor + major), "page faults");
	used = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	if (last_ns != 0 && time_ns > last_ns)
		put(time_ns,
		    (used - last_used) * 1e9 / (double)(time_ns - last_ns),
		    "processors in use");
	last_ns = time_ns;
	last_used = used;
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
}

static void *read_again_and_again(void *unused)
{
	struct pollfd polled = { stop, POLLIN, 0 };

	while (!(polled.revents & POLLIN)) {
		read_all();
		/* The directory is there in a moment. */
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
	stop = eventfd(0, EFD_CLOEXEC);
	r = stop < 0 ? errno :
		       pthread_create(&reader, NULL, read_again_and_again, NULL);
	has_reader = r == 0;
	if (r != 0)
		say("--counters: %s; the program runs without", strerror(r));
}

void counters_end(void)
{
	uint64_t one = 1;

	if (!has_reader || write(stop, &one, sizeof(one)) != sizeof(one))
		return;
	pthread_join(reader, NULL);
	if (file >= 0)
		close(file);
	if (file_error != 0)
		say("%s/counters: cannot be written: %s", directory,
		    strerror(file_error));
}

void counters_remove(void)
{
	char path[PATH_MAX + 16];

	if (file < 0)
		return;
	snprintf(path, sizeof(path), "%s/counters", directory);
	unlink(path);
}
