/*
 * Lists the tasks of the process from /proc/self/task, and reads their signal masks.
 */
#define _GNU_SOURCE
#include "os/tasks.h"

#include "os/sys.h"
#include "os/text.h"
#include "os/trust.h"

#include <errno.h>
#include <fcntl.h>

#include <shim/banned.h>

struct entry {
	uint64_t number, offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

int tasks_each(bool (*each)(uint32_t tid, void *argument), void *argument)
{
	char names[2048] __attribute__((aligned(8)));
	const struct entry *entry;
	long size;
	int fd;

	fd = sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	while ((size = sys_read_directory(fd, names, sizeof(names))) > 0) {
		for (long at = 0; at < size; at += entry->size) {
			const char *digits;
			uint32_t tid;

			entry = (const struct entry *)(names + at);
			digits = entry->name;
			tid = (uint32_t)text_read_decimal(&digits);
			if (tid != 0 && !each(tid, argument)) {
				sys_close(fd);
				return 1;
			}
		}
	}
	sys_close(fd);
	return (int)size;
}

bool tasks_are_one(void)
{
	struct sys_status status = { .links = 0 };
	int fd = sys_open("/proc/self/task", O_PATH | O_DIRECTORY | O_CLOEXEC,
			  0);
	int r;

	if (fd < 0)
		return false;
	r = sys_get_status(fd, &status);
	sys_close(fd);
	/* Its names are those of a directory with a subdirectory for each task. */
	return r == 0 && status.links == 3;
}

static bool read_digits(const char *at, uint64_t *number)
{
	*number = 0;
	for (unsigned i = 0; i < 16; i++, at++) {
		unsigned digit = *at >= '0' && *at <= '9' ?
					 (unsigned)*at - '0' :
				 *at >= 'a' && *at <= 'f' ?
					 (unsigned)*at - 'a' + 10 :
					 16;

		if (digit == 16)
			return false;
		*number = *number << 4 | digit;
	}
	return true;
}

/* Reads the begin of a file in the directory of the task. */
static long read_file_of(uint32_t tid, const char *file, char *text,
			 size_t room)
{
	char path[64];
	struct text name;
	long size;
	int fd;

	text_init(&name, path, sizeof(path));
	text_add(&name, "/proc/self/task/");
	text_add_number(&name, tid);
	text_add(&name, file);
	fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	size = sys_read(fd, text, room);
	sys_close(fd);
	return size;
}

/* The value behind @key, which begins with the end of a line; NULL if it is not there. */
static const char *find_value(const char *text, const char *key)
{
	for (; *text; text++) {
		const char *value = text_after(text, key);

		if (value)
			return value;
	}
	return NULL;
}

int tasks_blocked(uint32_t tid, uint64_t *signals)
{
	char text[2048];
	long size = read_file_of(tid, "/status", text, sizeof(text) - 1);
	const char *value;

	if (size < 0)
		return (int)size;
	text[size] = '\0';
	value = find_value(text, "\nSigBlk:\t");
	return value && read_digits(value, signals) ? 0 : -EINVAL;
}

uint32_t tasks_tracer(uint32_t tid)
{
	char text[384]; /* the seventh line, behind a name of 15 bytes */
	long size = read_file_of(tid, "/status", text, sizeof(text) - 1);
	const char *value;

	if (size < 0)
		return 0;
	text[size] = '\0';
	value = find_value(text, "\nTracerPid:\t");
	return value ? (uint32_t)text_read_decimal(&value) : 0;
}

/* The line is "NUMBER 0xHEX 0xHEX ...", "running", or has -1 for the number. */
enum task_call tasks_call(uint32_t tid, uint64_t words[TASKS_CALL_WORDS])
{
	char line[256];
	const char *at = line;
	long size = read_file_of(tid, "/syscall", line, sizeof(line) - 1);

	if (size > 0 && line[0] == 'r')
		return TASK_CALL_RUNS;
	if (size <= 0 || line[0] < '0' || line[0] > '9')
		return TASK_CALL_NONE;
	line[size] = '\0';
	words[0] = text_read_decimal(&at);
	for (unsigned i = 1; i < TASKS_CALL_WORDS; i++) {
		at = text_after(at, " 0x");
		if (!at)
			return TASK_CALL_NONE;
		words[i] = text_read_hex(&at);
	}
	return TASK_CALL_KNOWN;
}

bool tasks_is_asleep(uint32_t tid)
{
	char stat[48]; /* the number, a name of 15 bytes, the state */
	long size = read_file_of(tid, "/stat", stat, sizeof(stat));

	/* Only the name may have other brackets. */
	while (size > 0 && stat[size - 1] != ')')
		size--;
	return size <= 0 || size + 1 >= (long)sizeof(stat) ||
	       (stat[size + 1] != 'R' && stat[size + 1] != 'D');
}

uint64_t tasks_runs(uint32_t tid)
{
	char line
		[64]; /* nanoseconds that it ran, and waited; how often it ran */
	long size = read_file_of(tid, "/schedstat", line, sizeof(line) - 1);

	if (size <= 0)
		return 0;
	line[size] = '\0';
	for (const char *at = line + size; at > line; at--)
		if (at[-1] == ' ')
			return text_read_decimal(&at);
	return 0;
}
