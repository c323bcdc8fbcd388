/*
 * Opens the process for an attach, and dies with the reason if it cannot be attached to.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/text.h"
#include "process/remote_list.h"
#include "process/remote_symbols.h"
#include "process/steps.h"

/* mov %rax, (%rbx); pop %rbx; ret */
static const unsigned char keep_result[] = { 0x48, 0x89, 0x03, 0x5b, 0xc3 };
/* pop %rdi; ret, which is the end of pop %r15; ret */
static const unsigned char pop_argument[] = { 0x5f, 0xc3 };
/* mov $15, %rax; syscall */
static const unsigned char return_code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0,
					     0,	   0,	 0x0f, 0x05 };

void attach_read_mappings(struct attach *attach)
{
	bool changed;

	if (!process_memory_read(&attach->memory, &changed))
		target_refused(&attach->target, errno);
	if (changed && attach->safe.unwinder)
		unwinder_forget(attach->safe.unwinder);
}

const struct module *attach_find_module(const struct attach *attach,
					const char *prefix)
{
	const struct space *space = &attach->memory.space;
	uint32_t i;

	for (i = 0; i < space->module_count; i++)
		if (!strncmp(space->modules[i].name, prefix, strlen(prefix)) &&
		    remote_is_listed(&attach->remote, space,
				     &space->modules[i]))
			return &space->modules[i];
	return NULL;
}

long attach_status_number(const struct attach *attach, const char *key)
{
	char path[64], *line = NULL;
	size_t size = 0, length = strlen(key);
	long number = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status",
		 (int)attach->target.pid);
	file = fopen(path, "re");
	while (file && getline(&line, &size, file) > 0)
		if (!strncmp(line, key, length))
			number = strtol(line + length, NULL, 10);
	free(line);
	if (file)
		fclose(file);
	return number;
}

static void open_memory(struct attach *attach)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)attach->target.pid);
	attach->remote.pid = attach->target.pid;
	attach->remote.memory = open(path, O_RDWR | O_CLOEXEC);
	if (attach->remote.memory < 0)
		target_refused(&attach->target, errno);
}

/* musl's library is also its dynamic linker, and has either name. */
static bool has_musl(const struct space *space)
{
	uint32_t i;

	for (i = 0; i < space->module_count; i++)
		if (!strcmp(space->modules[i].name, "libc.so") ||
		    strstr(space->modules[i].name, "musl"))
			return true;
	return false;
}

static bool has_linker(const struct space *space)
{
	uint32_t i;

	for (i = 0; i < space->module_count; i++)
		if (!strncmp(space->modules[i].name, "ld-", 3))
			return true;
	return false;
}

static void find_code(struct attach *attach)
{
	const struct remote *remote = &attach->remote;
	uint64_t libc = attach->libc.start;

	attach->code = (struct libc_code){
		.keep_result = remote_code(remote, libc, keep_result,
					   sizeof(keep_result)),
		.pop_argument = remote_code(remote, libc, pop_argument,
					    sizeof(pop_argument)),
		.sigreturn = remote_code(remote, libc, return_code,
					 sizeof(return_code)),
		.setcontext = remote_symbol(remote, libc, "setcontext"),
		.syscall = remote_symbol(remote, libc, "syscall"),
	};
	attach->remote.code = &attach->code;
	attach->fork_lock = attach_fork_lock(attach);
}

static bool has_all_code(const struct attach *attach)
{
	const struct libc_code *code = &attach->code;

	return code->keep_result && code->pop_argument && code->sigreturn &&
	       code->setcontext && code->syscall &&
	       remote_symbol(&attach->remote, attach->libc.start, "dlopen");
}

/* Dies if the memory that was opened is gone: symbols that could not be read would seem to
 * be missing. */
static void check_memory(const struct attach *attach)
{
	const struct space *space = &attach->memory.space;
	char byte;

	if (!target_is_alive(&attach->target))
		die("process %d (%s) has ended", (int)attach->target.pid,
		    attach->target.name);
	if (space->module_count == 0 ||
	    !remote_read(&attach->remote, space->modules[0].start, &byte, 1))
		die("process %d (%s) ended, or executed another program, before "
		    "shim was attached",
		    (int)attach->target.pid, attach->target.name);
}

static const struct module *glibc_of(const struct attach *attach)
{
	const struct module *libc = attach_find_module(attach, "libc.so.6");

	return libc ? libc : attach_find_module(attach, "libc-2.");
}

/* A program that has only begun has the dynamic linker, and libc a moment later.  Returns
 * false if it has neither. */
#define LIBC_CHECKS   500
#define LIBC_CHECK_NS 2000000

static bool wait_for_libc(struct attach *attach)
{
	static const struct timespec pause = { 0, LIBC_CHECK_NS };
	const struct space *space = &attach->memory.space;
	unsigned i;

	for (i = 0; !has_musl(space) && !glibc_of(attach); i++) {
		check_memory(attach);
		if (!has_linker(space))
			return false;
		if (i == LIBC_CHECKS)
			die("process %d (%s) has no libc: it still loads its "
			    "libraries, or needs none (try again)",
			    (int)attach->target.pid, attach->target.name);
		nanosleep(&pause, NULL);
		attach_read_mappings(attach);
	}
	return true;
}

/* Finds libc, and dies if the process has another one, or none. */
static void find_libc(struct attach *attach)
{
	const struct space *space = &attach->memory.space;
	int pid = (int)attach->target.pid;
	const char *name = attach->target.name;
	bool is_dynamic = wait_for_libc(attach);
	const struct module *libc;
	uint32_t i;

	if (has_musl(space))
		die("process %d (%s) uses musl: shim attaches only to programs "
		    "with glibc (start it with profrun)",
		    pid, name);
	libc = is_dynamic ? glibc_of(attach) : NULL;
	if (!libc) {
		check_memory(attach);
		die("process %d (%s) is statically linked, or has no glibc: shim "
		    "cannot be loaded into it",
		    pid, name);
	}
	attach->libc = *libc;
	attach->safe.libc = attach->libc.start;
	for (i = 0; i < space->module_count; i++)
		if (space->modules[i].start != attach->libc.start &&
		    strncmp(space->modules[i].name, "ld-", 3) != 0 &&
		    strncmp(space->modules[i].name, "libshim", 7) != 0 &&
		    remote_symbol(&attach->remote, space->modules[i].start,
				  "malloc"))
			attach->safe.has_other_malloc = true;
	find_code(attach);
	if (!has_all_code(attach)) {
		check_memory(attach);
		die("process %d (%s): its libc (%s) is too old: shim needs glibc "
		    "2.34 to attach",
		    pid, name, attach->libc.object.path);
	}
}

/* Only one profrun at a time.  Who can lock this file could also stop the process: it can be
 * opened only by those who may trace it. */
static void lock_process(const struct attach *attach)
{
	if (flock(attach->remote.memory, LOCK_EX | LOCK_NB) < 0 &&
	    errno == EWOULDBLOCK)
		die("process %d (%s): another profrun is attaching to it",
		    (int)attach->target.pid, attach->target.name);
}

void attach_close(struct attach *attach)
{
	close(attach->remote.memory);
	attach->remote.memory = -1;
}

static void check_state(struct attach *attach, bool is_forced)
{
	int pid = (int)attach->target.pid;
	long filter = attach_status_number(attach, "Seccomp:");
	char name[64], state;

	if (target_thread(&attach->target, attach->target.pid, name, &state) &&
	    (state == 'T' || state == 't'))
		die("process %d (%s) is stopped: continue it first (kill -CONT "
		    "%d)",
		    pid, attach->target.name, pid);
	if (filter == 1)
		die("process %d (%s) forbids itself all system calls (seccomp): "
		    "shim cannot be loaded",
		    pid, attach->target.name);
	if (filter == 2 && !is_forced)
		die("process %d (%s) has a filter for system calls (seccomp), "
		    "which may kill it at one that shim makes (--force attaches "
		    "nevertheless)",
		    pid, attach->target.name);
}

/* Whether the task at @path blocks SIGTRAP. */
static bool blocks_traps(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	uint64_t mask = 0;

	while (file && getline(&line, &size, file) > 0)
		if (!strncmp(line, "SigBlk:", 7))
			mask = strtoull(line + 7, NULL, 16);
	free(line);
	if (file)
		fclose(file);
	return mask >> (SIGTRAP - 1) & 1;
}

/* libc blocks all signals for a moment, for example while it makes a thread, and the thread may
 * have to wait for a processor just then.  So it is looked at until it does not block SIGTRAP. */
#define TRAP_CHECKS   500
#define TRAP_CHECK_NS 2000000

static bool keeps_traps_blocked(const char *path)
{
	static const struct timespec pause = { 0, TRAP_CHECK_NS };
	unsigned i;

	for (i = 0; blocks_traps(path); i++) {
		if (i == TRAP_CHECKS)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* The kernel ends a program that hits a trap with the signal blocked.  shim checks all
 * threads but its own, whose mask is profrun's then. */
void attach_check_traps(struct attach *attach)
{
	uint32_t count, i;
	pid_t *threads = target_threads(&attach->target, &count);
	char path[64];

	for (i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/status",
			 (int)attach->target.pid, (int)threads[i]);
		if (keeps_traps_blocked(path))
			die("process %d (%s): its thread %d blocks SIGTRAP, which "
			    "coverage needs",
			    (int)attach->target.pid, attach->target.name,
			    (int)threads[i]);
	}
	free(threads);
}

/* shim finds the program's code in /proc/self/maps. */
static void check_proc(const struct attach *attach)
{
	struct stat info;

	if (attach->root[0] &&
	    lstat(keep_format("%s/proc/self", attach->root), &info) < 0)
		die("process %d (%s) has no /proc in its root directory: mount "
		    "it there",
		    (int)attach->target.pid, attach->target.name);
}

void attach_open(struct attach *attach, int pid, bool is_forced)
{
	remote_symbols_forget();
	target_open(&attach->target, pid);
	attach->memory.target = &attach->target;
	check_state(attach, is_forced);
	open_memory(attach);
	lock_process(attach);
	attach_read_mappings(attach);
	target_root(attach->target.pid, attach->root);
	check_proc(attach);
	find_libc(attach);
	attach->safe.space = &attach->memory.space;
	attach->safe.unwinder = unwinder_open(&attach->memory.space);
	attach->safe.frames = allocate(UNWIND_DEPTH_MAX,
				       sizeof(*attach->safe.frames));
	/* The stopped thread waits for profrun.  Only root may do this. */
	setpriority(PRIO_PROCESS, 0, -20);
}

/* The memory that was opened belongs to one program: after an exec it cannot be read. */
bool attach_is_same_program(const struct attach *attach)
{
	char byte;

	return remote_read(&attach->remote, attach->libc.start, &byte, 1) &&
	       target_is_alive(&attach->target);
}
