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

int tasks_blocked(uint32_t tid, uint64_t *signals)
{
	static const char key[] = "\nSigBlk:\t";
	char path[64], text[2048];
	struct text name;
	long size;
	int fd;

	text_init(&name, path, sizeof(path));
	text_add(&name, "/proc/self/task/");
	text_add_number(&name, tid);
	text_add(&name, "/status");
	fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	size = sys_read(fd, text, sizeof(text) - 1);
	sys_close(fd);
	if (size < 0)
		return (int)size;
	text[size] = '\0';
	for (const char *at = text; *at; at++) {
		const char *value = text_after(at, key);

		if (value)
			return read_digits(value, signals) ? 0 : -EINVAL;
	}
	return -EINVAL;
}

bool tasks_is_asleep(uint32_t tid)
{
	char path[40], stat[48]; /* the number, a name of 15 bytes, the state */
	struct text name;
	long size;
	int fd;

	text_init(&name, path, sizeof(path));
	text_add(&name, "/proc/self/task/");
	text_add_number(&name, tid);
	text_add(&name, "/stat");
	fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return true;
	size = sys_read(fd, stat, sizeof(stat));
	sys_close(fd);
	/* Only the name may have other brackets. */
	while (size > 0 && stat[size - 1] != ')')
		size--;
	return size <= 0 || size + 1 >= (long)sizeof(stat) ||
	       (stat[size + 1] != 'R' && stat[size + 1] != 'D');
}
