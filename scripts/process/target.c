/*
 * Finds the process to read.  Finds the reasons why it cannot be read before ptrace
 * fails, because the kernel has the same error for most of them.
 */
#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/messages.h"
#include "process/target.h"

/* A flag in /proc/PID/stat. */
#define PF_KTHREAD 0x00200000u

#define STATUS_SIZE 4096

/* Reads /proc/PID/@name; false if it cannot be read. */
static bool read_file(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, size - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static bool status_number(const char *status, const char *key, long *number)
{
	const char *at = strstr(status, key);

	if (!at)
		return false;
	*number = strtol(at + strlen(key), NULL, 10);
	return true;
}

/* The fields of a stat file after the name, which may contain any characters. */
static const char *after_name(const char *stat)
{
	const char *end = strrchr(stat, ')');

	return end && end[1] == ' ' ? end + 2 : NULL;
}

static void copy_name(const char *stat, char name[64])
{
	const char *begin = strchr(stat, '('), *end = strrchr(stat, ')');
	size_t size = begin && end > begin ? (size_t)(end - begin - 1) : 0;

	if (size > 63)
		size = 63;
	if (size)
		memcpy(name, begin + 1, size);
	name[size] = '\0';
}

static bool is_kernel_thread(const char *stat)
{
	const char *at = after_name(stat);
	unsigned flags = 0;

	return at && sscanf(at, "%*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & PF_KTHREAD;
}

static void check_tracer(const struct target *target, const char *status)
{
	char stat[STATUS_SIZE], name[64] = "?";
	long tracer;

	if (!status_number(status, "\nTracerPid:", &tracer) || tracer == 0)
		return;
	if (read_file((pid_t)tracer, "stat", stat, sizeof(stat)))
		copy_name(stat, name);
	die("process %d is already traced by process %ld (%s): only one tracer "
	    "is possible",
	    (int)target->pid, tracer, name);
}

/* A file that cannot be read gives no message here, because ptrace will fail. */
static void check_class(const struct target *target)
{
	unsigned char header[EI_NIDENT];
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)target->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	got = read(fd, header, sizeof(header));
	close(fd);
	if (got == sizeof(header) && header[EI_CLASS] != ELFCLASS64)
		die("process %d (%s) is a 32-bit program: shim reads only 64-bit "
		    "programs",
		    (int)target->pid, target->name);
}

void target_open(struct target *target, pid_t pid)
{
	char status[STATUS_SIZE], stat[STATUS_SIZE];
	const char *fields;
	long leader, threads = 0;

	*target = (struct target){ .pid = pid };
	if (!read_file(pid, "status", status, sizeof(status)) ||
	    !read_file(pid, "stat", stat, sizeof(stat)))
		die("there is no process %d", (int)pid);
	copy_name(stat, target->name);
	fields = after_name(stat);
	if (status_number(status, "\nTgid:", &leader) && leader != pid)
		die("%d is a thread: give its process, %ld", (int)pid, leader);
	if (pid == getpid())
		die("process %d is this profrun itself", (int)pid);
	if (is_kernel_thread(stat))
		die("process %d (%s) is a kernel thread: it has no "
		    "program",
		    (int)pid, target->name);
	status_number(status, "\nThreads:", &threads);
	if (fields && *fields == 'Z' && threads > 1)
		die("process %d (%s): its first thread has ended, and the kernel "
		    "shows the memory of a process only through that thread",
		    (int)pid, target->name);
	if (fields && (*fields == 'Z' || *fields == 'X'))
		die("process %d (%s) has already ended: its parent has not yet "
		    "waited for it",
		    (int)pid, target->name);
	check_tracer(target, status);
	check_class(target);
}

bool target_is_alive(const struct target *target)
{
	char stat[STATUS_SIZE];
	const char *fields;

	if (!read_file(target->pid, "stat", stat, sizeof(stat)))
		return false;
	fields = after_name(stat);
	return fields && *fields != 'Z' && *fields != 'X';
}

bool target_is_same_file(const char *left, const char *right)
{
	struct stat a, b;

	return stat(left, &a) < 0 || stat(right, &b) < 0 ||
	       (a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

void target_root(pid_t pid, char root[32])
{
	char path[64];

	root[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (target_is_same_file("/proc/self/ns/mnt", path)) {
		snprintf(path, sizeof(path), "/proc/%d/root/", (int)pid);
		if (target_is_same_file("/", path))
			return;
	}
	snprintf(root, 32, "/proc/%d/root", (int)pid);
}

static long yama_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	long scope = 0;

	if (file && fscanf(file, "%ld", &scope) != 1)
		scope = 0;
	if (file)
		fclose(file);
	return scope;
}

void target_refused(const struct target *target, int error)
{
	int pid = (int)target->pid;
	char status[STATUS_SIZE];
	long uid = -1;

	if (error == ESRCH || !target_is_alive(target) ||
	    !read_file(target->pid, "status", status, sizeof(status)))
		die("process %d (%s) has ended", pid, target->name);
	check_tracer(target, status);
	if (error != EPERM && error != EACCES)
		die("process %d (%s): %s", pid, target->name, strerror(error));
	status_number(status, "\nUid:", &uid);
	if (uid != (long)geteuid() && geteuid() != 0)
		die("process %d (%s) belongs to another user (%ld): run profrun "
		    "as that user or as root, or give it CAP_SYS_PTRACE",
		    pid, target->name, uid);
	switch (yama_scope()) {
	case 0: break;
	case 1:
		die("process %d (%s): the kernel lets users trace only their "
		    "children (kernel.yama.ptrace_scope is 1): run profrun as root "
		    "or with CAP_SYS_PTRACE, or `sysctl "
		    "kernel.yama.ptrace_scope=0`",
		    pid, target->name);
	case 2:
		die("process %d (%s): the kernel lets only administrators trace "
		    "(kernel.yama.ptrace_scope is 2): run profrun as root or "
		    "with CAP_SYS_PTRACE",
		    pid, target->name);
	default:
		die("process %d (%s): the kernel allows no tracing until the next "
		    "boot (kernel.yama.ptrace_scope is 3)",
		    pid, target->name);
	}
	die("process %d (%s): the kernel refuses to trace it: it has had "
	    "privileges (set-uid, capabilities), or a container or security "
	    "module forbids it; run profrun as root with CAP_SYS_PTRACE",
	    pid, target->name);
}

bool target_thread(const struct target *target, pid_t tid, char name[64],
		   char *state)
{
	char file[64], stat[STATUS_SIZE];
	const char *fields;

	snprintf(file, sizeof(file), "task/%d/stat", (int)tid);
	if (!read_file(target->pid, file, stat, sizeof(stat)))
		return false;
	copy_name(stat, name);
	fields = after_name(stat);
	*state = fields ? *fields : '?';
	return *state != 'Z' && *state != 'X';
}

static int compare_threads(const void *left, const void *right)
{
	const pid_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

pid_t *target_threads(const struct target *target, uint32_t *count)
{
	pid_t *threads = NULL;
	uint32_t room = 0;
	char path[64];
	struct dirent *entry;
	DIR *tasks;

	*count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)target->pid);
	tasks = opendir(path);
	if (!tasks)
		return NULL;
	while ((entry = readdir(tasks)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		GROW(threads, *count, room);
		threads[(*count)++] = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	closedir(tasks);
	if (*count)
		qsort(threads, *count, sizeof(*threads), compare_threads);
	return threads;
}
