/*
 * Starts shim in a process that was started without it.
 *
 * The other threads go on.  One thread at a safe place (safe.c) makes the calls: mmap for
 * a stack, dlopen of the library, and profrun_attach_start with the settings.
 *
 * The library is opened by a link in the recording's directory: a file name that tells
 * its constructor to wait for profrun_attach_start (<shim/attach.h>).  For a process in
 * another mount namespace, it is a copy of the library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <shim/attach.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "base/seconds.h"
#include "base/text.h"
#include "common/copy.h"
#include "common/running.h"
#include "process/attach.h"
#include "process/process_memory.h"
#include "process/remote.h"
#include "process/remote_list.h"
#include "process/remote_symbols.h"
#include "process/safe.h"
#include "process/target.h"

#define SEARCH_S   5		/* for a thread at a safe place */
#define ROUND_NS   2000000	/* between two searches */
#define CONTROL_S  5		/* for the socket of `profrun ctl` */
#define STACK_SIZE (512u << 10) /* for the calls, with the settings above it */
#define LINK_NAME  SHIM_ATTACH_NAME "so"

/* mov %rax, (%rbx); pop %rbx; ret */
static const unsigned char keep_result[] = { 0x48, 0x89, 0x03, 0x5b, 0xc3 };
/* mov $15, %rax; syscall */
static const unsigned char return_code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0,
					     0,	   0,	 0x0f, 0x05 };

struct attach {
	struct target target;
	struct process_memory memory;
	struct remote remote;
	struct safe safe;
	struct module libc; /* a copy: mappings are read again */
	char root[32];	    /* the prefix of the process's file names, or "" */
	char directory[PATH_MAX];
	uint64_t stack, stack_size; /* mapped in the process; 0: not yet */
	uint64_t errno_at;	    /* errno of the stopped thread */
	int thread_errno;	    /* its value at the stop */
	uint64_t stopped_ns;
};

/* --- the process --- */

static void read_mappings(struct attach *attach)
{
	bool changed;

	if (!process_memory_read(&attach->memory, &changed))
		target_refused(&attach->target, errno);
	if (changed && attach->safe.unwinder)
		unwinder_forget(attach->safe.unwinder);
}

static const struct module *find_module(const struct attach *attach,
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

static long status_number(const struct attach *attach, const char *key)
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

/* Finds libc, and dies if the process has another one, or none. */
static void find_libc(struct attach *attach)
{
	const struct space *space = &attach->memory.space;
	int pid = (int)attach->target.pid;
	const char *name = attach->target.name;
	const struct module *libc;
	uint32_t i;

	if (has_musl(space))
		die("process %d (%s) uses musl: shim attaches only to programs "
		    "with glibc (start it with profrun)",
		    pid, name);
	libc = find_module(attach, "libc.so.6");
	if (!libc)
		libc = find_module(attach, "libc-2.");
	if (!libc)
		die("process %d (%s) is statically linked, or has no glibc: shim "
		    "cannot be loaded into it",
		    pid, name);
	attach->libc = *libc;
	attach->safe.libc = attach->libc.start;
	for (i = 0; i < space->module_count; i++)
		if (space->modules[i].start != attach->libc.start &&
		    strncmp(space->modules[i].name, "ld-", 3) != 0 &&
		    strncmp(space->modules[i].name, "libshim", 7) != 0 &&
		    remote_symbol(&attach->remote, space->modules[i].start,
				  "malloc"))
			attach->safe.has_other_malloc = true;
	attach->remote.keep_result = remote_code(
		&attach->remote, attach->libc.start, attach->libc.end,
		keep_result, sizeof(keep_result));
	attach->remote.sigreturn = remote_code(
		&attach->remote, attach->libc.start, attach->libc.end,
		return_code, sizeof(return_code));
	if (!attach->remote.keep_result || !attach->remote.sigreturn ||
	    !remote_symbol(&attach->remote, attach->libc.start, "dlopen"))
		die("process %d (%s): its libc (%s) is too old: shim needs glibc "
		    "2.34 to attach",
		    pid, name, attach->libc.object.path);
}

static void check_state(struct attach *attach, bool is_forced)
{
	int pid = (int)attach->target.pid;
	long filter = status_number(attach, "Seccomp:");
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

/* The kernel ends a program that hits a trap with the signal blocked.  shim checks all
 * threads but its own, whose mask is profrun's then. */
static void check_traps(struct attach *attach)
{
	uint32_t count, i;
	pid_t *threads = target_threads(&attach->target, &count);
	char path[64];

	for (i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/status",
			 (int)attach->target.pid, (int)threads[i]);
		if (blocks_traps(path))
			die("process %d (%s): its thread %d blocks SIGTRAP, which "
			    "coverage needs",
			    (int)attach->target.pid, attach->target.name,
			    (int)threads[i]);
	}
	free(threads);
}

static bool wants_coverage(const char *items)
{
	for (; items; items = strchr(items, ';')) {
		items += *items == ';';
		if (!strncmp(items, "coverage", 8) &&
		    (items[8] == '\0' || items[8] == ':' || items[8] == ';'))
			return true;
	}
	return false;
}

/* Only one profrun at a time: an abstract socket, which ends with its process. */
static void lock_process(const struct attach *attach)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	static int fd = -1;

	if (fd >= 0)
		return; /* `record --pid`, which detaches */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
		 "profrun-attach-%d", (int)attach->target.pid);
	if (fd >= 0 &&
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 &&
	    errno == EADDRINUSE)
		die("process %d (%s): another profrun is attaching to it",
		    (int)attach->target.pid, attach->target.name);
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

static void open_process(struct attach *attach, int pid, bool is_forced)
{
	remote_symbols_forget();
	target_open(&attach->target, pid);
	lock_process(attach);
	attach->memory.target = &attach->target;
	check_state(attach, is_forced);
	open_memory(attach);
	read_mappings(attach);
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
static bool is_same_program(const struct attach *attach)
{
	char byte;

	return remote_read(&attach->remote, attach->libc.start, &byte, 1) &&
	       target_is_alive(&attach->target);
}

_Noreturn static void call_failed(struct attach *attach,
				  enum remote_result result)
{
	int pid = (int)attach->target.pid;

	remote_release(&attach->remote);
	if (result == REMOTE_NO_ROOM && is_same_program(attach)) {
		die("process %d (%s): the thread's stack has no room for the "
		    "call (try again)",
		    pid, attach->target.name);
	}
	die("process %d (%s) ended, or executed another program, while shim was "
	    "attached",
	    pid, attach->target.name);
}

/* --- a thread at a safe place --- */

/* Stops one of @threads that sleeps, or that runs, and is at a safe place.  If none is,
 * stores a reason. */
static bool stop_one(struct attach *attach, const pid_t *threads,
		     uint32_t count, bool that_sleeps, const char **reason)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint64_t begin = ns_of(CLOCK_MONOTONIC);
		enum remote_result result;
		const char *unsafe;
		char name[64], state;

		if (!target_thread(&attach->target, threads[i], name, &state))
			continue;
		if (state == 'D') {
			*reason = "waiting in the kernel";
			continue;
		}
		if ((state == 'S') != that_sleeps)
			continue;
		result = remote_stop(&attach->remote, threads[i]);
		if (result == REMOTE_REFUSED) {
			int error = errno;

			/* The kernel also refuses threads that have ended. */
			if (target_thread(&attach->target, threads[i], name,
					  &state))
				target_refused(&attach->target, error);
		}
		if (result != REMOTE_DONE)
			continue;
		unsafe = safe_reason(&attach->safe, &attach->remote);
		attach->stopped_ns = begin;
		if (!unsafe)
			return true;
		*reason = unsafe;
		remote_release(&attach->remote);
	}
	return false;
}

static void stop_safely(struct attach *attach)
{
	static const struct timespec pause = { 0, ROUND_NS };
	uint64_t until = ns_of(CLOCK_MONOTONIC) + SEARCH_S * 1000000000ull;
	const char *reason = "there";
	bool is_stopped = false;

	while (!is_stopped) {
		uint32_t count;
		pid_t *threads = target_threads(&attach->target, &count);

		if (!count || !is_same_program(attach))
			call_failed(attach, REMOTE_GONE);
		read_mappings(attach);
		/* A thread that sleeps loses the least by a stop, and the kernel
		 * prefers it to threads that run. */
		is_stopped = stop_one(attach, threads, count, true, &reason) ||
			     stop_one(attach, threads, count, false, &reason);
		free(threads);
		if (is_stopped)
			return;
		if (ns_of(CLOCK_MONOTONIC) >= until)
			break;
		nanosleep(&pause, NULL);
	}
	die("process %d (%s): in %d s, no thread came to a place where shim can "
	    "be loaded: the last one was %s (try again)",
	    (int)attach->target.pid, attach->target.name, SEARCH_S, reason);
}

/* --- calls --- */

static uint64_t call(struct attach *attach, const char *name, uint64_t first,
		     uint64_t second, uint64_t third, uint64_t fourth,
		     uint64_t fifth)
{
	const struct remote_function function = {
		.address = remote_symbol(&attach->remote, attach->libc.start,
					 name),
		.arguments = { first, second, third, fourth, fifth },
		.stack = attach->stack ? attach->stack + STACK_SIZE : 0,
	};
	uint64_t result = 0;
	enum remote_result done = REMOTE_GONE;

	if (function.address)
		done = remote_call(&attach->remote, &function, &result);
	if (done != REMOTE_DONE)
		call_failed(attach, done);
	return result;
}

/* Frees the stack in the process, and lets the thread go on. */
static void finish(struct attach *attach)
{
	uint64_t stack = attach->stack;

	attach->stack = 0;
	if (stack)
		call(attach, "munmap", stack, attach->stack_size, 0, 0, 0);
	remote_write(&attach->remote, attach->errno_at, &attach->thread_errno,
		     sizeof(attach->thread_errno));
	remote_release(&attach->remote);
	attach->stopped_ns = ns_of(CLOCK_MONOTONIC) - attach->stopped_ns;
}

static void map_stack(struct attach *attach, size_t settings_size)
{
	uint64_t result;

	attach->errno_at = call(attach, "__errno_location", 0, 0, 0, 0, 0);
	remote_read(&attach->remote, attach->errno_at, &attach->thread_errno,
		    sizeof(attach->thread_errno));
	attach->stack_size = STACK_SIZE + ((settings_size + 4095) & ~4095ull);
	result = call(attach, "mmap", 0, attach->stack_size,
		      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      (uint64_t)-1);
	if (result > (uint64_t)-4096) {
		int error = attach->remote.failed_error;

		finish(attach);
		die("process %d (%s): its mmap fails: %s",
		    (int)attach->target.pid, attach->target.name,
		    strerror(error));
	}
	attach->stack = result;
}

/* Where shim is loaded; 0: it is not. */
static uint64_t find_shim(struct attach *attach)
{
	const struct module *shim;

	read_mappings(attach);
	shim = find_module(attach, "libshim.so");
	if (!shim)
		shim = find_module(attach, SHIM_ATTACH_NAME);
	return shim ? shim->start : 0;
}

static uint32_t read_state(struct attach *attach, uint64_t shim)
{
	uint32_t state = SHIM_ATTACH_NEVER;
	uint64_t at = remote_symbol(&attach->remote, shim,
				    "profrun_attach_state");

	if (!at || !remote_read(&attach->remote, at, &state, sizeof(state)))
		return SHIM_ATTACH_NEVER;
	return state;
}

/* Calls a function of <shim/attach.h>.  The word that it sets is at the low end of the
 * stack. */
static int32_t call_shim(struct attach *attach, uint64_t shim, const char *name,
			 uint64_t argument)
{
	const struct remote_function function = {
		.address = remote_symbol(&attach->remote, shim, name),
		.arguments = { attach->stack, argument },
		.stack = attach->stack + STACK_SIZE,
		.done = attach->stack,
	};
	const uint32_t zero = 0;
	uint64_t result = 0;
	enum remote_result done = REMOTE_GONE;

	if (function.address &&
	    remote_write(&attach->remote, attach->stack, &zero, sizeof(zero)))
		done = remote_call(&attach->remote, &function, &result);
	if (done != REMOTE_DONE)
		call_failed(attach, done);
	return (int32_t)result;
}

/* --- the recording's directory --- */

static const char *expand(const struct attach *attach, const char *pattern)
{
	char host[128] = "?", *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		die("%s", strerror(errno));
	gethostname(host, sizeof(host) - 1);
	for (; *pattern; pattern++) {
		if (*pattern != '%' || !pattern[1]) {
			fputc(*pattern, out);
			continue;
		}
		switch (*++pattern) {
		case 'p': fprintf(out, "%d", (int)attach->target.pid); break;
		case 'h': fputs(host, out); break;
		case 'n': {
			const char *at = attach->target.name;

			for (; *at; at++)
				fputc(*at == '/' ? '_' : *at, out);
			break;
		}
		case 'r': fputc('0', out); break;
		default: fputc(*pattern, out);
		}
	}
	if (fclose(out) != 0)
		die("%s", strerror(errno));
	return text;
}

/* The path from here of the process's file @path. */
static const char *path_here(const struct attach *attach, const char *path)
{
	return keep_format("%s%s", attach->root, path);
}

/* Whether the process finds the same directory by the name @path. */
static bool is_same_there(const struct attach *attach, const char *path)
{
	const char *there = path_here(attach, path);

	return access(path, F_OK) == 0 && access(there, F_OK) == 0 &&
	       target_is_same_file(path, there);
}

static void make_directory(struct attach *attach, const char *output)
{
	const char *name = expand(attach, output ? output : "profrun.%n.%p");
	char current[PATH_MAX] = "";
	long uid = status_number(attach, "Uid:"),
	     gid = status_number(attach, "Gid:");
	unsigned i;

	if (name[0] != '/') {
		if (!getcwd(current, sizeof(current) - 1))
			die("%s", strerror(errno));
		if (!is_same_there(attach, current))
			strcpy(current, "/tmp");
		strcat(current, "/");
	}
	for (i = 0; i < 10000; i++) {
		if (snprintf(attach->directory, sizeof(attach->directory),
			     i ? "%s%s.%u" : "%s%s", current, name,
			     i) >= PATH_MAX - 64)
			die("the name of the recording is too long");
		if (mkdir(path_here(attach, attach->directory), 0700) == 0)
			break;
		if (errno != EEXIST || output)
			die("%s: %s%s", attach->directory, strerror(errno),
			    errno == EEXIST ?
				    "; a recording is never overwritten" :
				    "");
	}
	if (geteuid() == 0 && uid != 0 &&
	    chown(path_here(attach, attach->directory), (uid_t)uid,
		  (gid_t)gid) < 0)
		die("%s: %s", attach->directory, strerror(errno));
}

/* The name of the directory for commands that read it from here. */
static const char *name_here(const struct attach *attach)
{
	return is_same_there(attach, attach->directory) ?
		       attach->directory :
		       path_here(attach, attach->directory);
}

static const char *link_path(const struct attach *attach)
{
	return keep_format("%s/" LINK_NAME, attach->directory);
}

/* Provides the library for the process. */
static void send_library(struct attach *attach, const char *library)
{
	const char *path = path_here(attach, link_path(attach));
	char real[PATH_MAX];
	int in, out;

	if (!realpath(library, real))
		die("%s: %s", library, strerror(errno));
	if (!attach->root[0]) {
		if (symlink(real, path) < 0)
			die("%s: %s", path, strerror(errno));
		return;
	}
	in = open(real, O_RDONLY | O_CLOEXEC);
	out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (in < 0 || out < 0 || copy_with_holes(in, out, NULL) < 0 ||
	    close(out) < 0)
		die("%s: %s", path, strerror(errno));
	close(in);
}

/* Removes what no recording has begun in.  The library's name is no part of it. */
static void remove_link(const struct attach *attach)
{
	unlink(path_here(attach, link_path(attach)));
}

/* The directory of this attach, until something is recorded. */
static const struct attach *unused;

static void remove_unused(void)
{
	if (!unused)
		return;
	remove_link(unused);
	/* print_log() has printed it. */
	unlink(path_here(unused, keep_format("%s/log", unused->directory)));
	rmdir(path_here(unused, unused->directory));
}

/* --- attach --- */

static size_t put_settings(const struct attach *attach,
			   const struct attach_options *options, char **text)
{
	size_t size;
	FILE *out = open_memstream(text, &size);

	if (!out)
		die("%s", strerror(errno));
	fprintf(out, "SHIM_DIR=%s%c", attach->directory, 0);
	if (options->profile)
		fprintf(out, "SHIM_PROFILE=%s%c", options->profile, 0);
	if (options->filter)
		fprintf(out, "SHIM_FILTER=%s%c", options->filter, 0);
	if (options->has_control)
		fprintf(out, "SHIM_CONTROL=1%c", 0);
	fputc(0, out);
	fputc(0, out);
	if (fclose(out) != 0)
		die("%s", strerror(errno));
	return size;
}

/* Reads the text that dlerror returns in the process. */
static void read_dlerror(struct attach *attach, char text[256])
{
	uint64_t at = call(attach, "dlerror", 0, 0, 0, 0, 0);
	size_t i = 0;

	while (at && i < 255 &&
	       remote_read(&attach->remote, at + i, text + i, 1) && text[i])
		i++;
	text[i] = '\0';
}

/* Opens the library in the process. */
static void load(struct attach *attach)
{
	const char *path = link_path(attach);
	char reason[256];

	if (!remote_write(&attach->remote, attach->stack + STACK_SIZE, path,
			  strlen(path) + 1) ||
	    call(attach, "dlopen", attach->stack + STACK_SIZE,
		 RTLD_NOW | RTLD_LOCAL, 0, 0, 0) != 0)
		return;
	read_dlerror(attach, reason);
	finish(attach);
	die("process %d (%s): its dlopen refuses shim: %s",
	    (int)attach->target.pid, attach->target.name, reason);
}

static void print_log(const struct attach *attach)
{
	const char *path = path_here(attach,
				     keep_format("%s/log", attach->directory));
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		warn("%s", line);
	}
	free(line);
	if (file)
		fclose(file);
}

static void say_done(const struct attach *attach, bool is_quiet,
		     const char *what)
{
	char time[SHORT_TEXT];

	if (!is_quiet)
		fprintf(stderr,
			"profrun: %s process %d (%s); one of its threads was "
			"stopped for %s\n",
			what, (int)attach->target.pid, attach->target.name,
			human_ns(time, (double)attach->stopped_ns));
}

/* Continues after a detach. */
static void go_on(struct attach *attach, uint64_t shim,
		  const struct attach_options *options)
{
	char directory[PATH_MAX], *slash;
	int32_t result;

	if (options->has_control)
		die("process %d (%s) was recorded before: without -o it continues "
		    "that recording, so --control is not possible",
		    (int)attach->target.pid, attach->target.name);
	if (!running_recording(attach->target.pid, directory))
		die("process %d (%s): it has no recording that can go on: "
		    "begin another one with -o DIR",
		    (int)attach->target.pid, attach->target.name);
	slash = strrchr(directory, '/');
	*slash = '\0';
	strcpy(attach->directory, directory);
	stop_safely(attach);
	map_stack(attach, 1);
	result = call_shim(attach, shim, "profrun_attach_start",
			   attach->stack + STACK_SIZE);
	finish(attach);
	if (result < 0)
		die("process %d (%s): shim does not start again (%#x)",
		    (int)attach->target.pid, attach->target.name,
		    (unsigned)result);
}

/* Begins the first recording of the process, or another one if @loaded, where shim is
 * loaded, is not 0. */
static void begin(struct attach *attach, const struct attach_options *options,
		  uint64_t loaded)
{
	uint64_t shim;
	char *settings;
	size_t size;
	int32_t result;

	if (wants_coverage(options->profile))
		check_traps(attach);
	make_directory(attach, options->output);
	unused = attach;
	atexit(remove_unused);
	if (!loaded)
		send_library(attach, options->library);
	size = put_settings(attach, options, &settings);
	stop_safely(attach);
	map_stack(attach, size > PATH_MAX ? size : PATH_MAX);
	/* A profrun that was killed may have loaded it. */
	shim = loaded ? loaded : find_shim(attach);
	if (!shim) {
		load(attach);
		shim = find_shim(attach);
	}
	if (!shim || !remote_write(&attach->remote, attach->stack + STACK_SIZE,
				   settings, size)) {
		finish(attach);
		die("process %d (%s): the library is not where it was loaded",
		    (int)attach->target.pid, attach->target.name);
	}
	result = call_shim(attach, shim, "profrun_attach_start",
			   attach->stack + STACK_SIZE);
	finish(attach);
	free(settings);
	remove_link(attach);
	if (result < 0) {
		print_log(attach);
		die("process %d (%s): nothing is recorded (%#x)",
		    (int)attach->target.pid, attach->target.name,
		    (unsigned)result);
	}
	unused = NULL;
}

/* Whether `profrun ctl` reaches the process. */
static bool has_control(const struct attach *attach)
{
	char directory[PATH_MAX];

	return running_recording(attach->target.pid, directory) &&
	       access(keep_format("%s/control", directory), F_OK) == 0;
}

/* The process makes the socket again in another recording, within a second. */
static void wait_for_control(const struct attach *attach)
{
	static const struct timespec pause = { 0, 5000000 };
	uint64_t until = ns_of(CLOCK_MONOTONIC) + CONTROL_S * 1000000000ull;

	while (!has_control(attach) && ns_of(CLOCK_MONOTONIC) < until)
		nanosleep(&pause, NULL);
}

/* After a detach: continues that recording, or begins another one with -o. */
static void begin_again(struct attach *attach, uint64_t shim,
			const struct attach_options *options)
{
	bool awaits;

	if (options->profile || options->filter)
		die("process %d (%s) was recorded before: it keeps the profilers "
		    "and the filter of its first recording, so -p and -F are not "
		    "possible",
		    (int)attach->target.pid, attach->target.name);
	if (!options->output) {
		go_on(attach, shim, options);
		return;
	}
	awaits = options->has_control || has_control(attach);
	begin(attach, options, shim);
	if (awaits)
		wait_for_control(attach);
}

int attach_begin(const struct attach_options *options, int pid,
		 const char **directory)
{
	static struct attach attach;
	uint64_t shim;

	open_process(&attach, pid, options->is_forced);
	shim = find_shim(&attach);
	if (!shim) {
		begin(&attach, options, 0);
	} else {
		switch (read_state(&attach, shim)) {
		case SHIM_ATTACH_OPENED: begin(&attach, options, 0); break;
		case SHIM_ATTACH_DETACHED:
			begin_again(&attach, shim, options);
			break;
		case SHIM_ATTACH_RECORDS:
			die("process %d (%s) is recorded already: `profrun ctl "
			    "%d status`, or `profrun detach %d`",
			    pid, attach.target.name, pid, pid);
		default:
			die("process %d (%s) was started with shim: use "
			    "`profrun ctl %d VERB`",
			    pid, attach.target.name, pid);
		}
	}
	say_done(&attach, options->is_quiet, "recording");
	*directory = attach.directory;
	if (!options->is_quiet)
		fprintf(stderr, "profrun: recording: %s\n", name_here(&attach));
	return 0;
}

int attach_end(int pid, bool is_quiet)
{
	static struct attach attach;
	uint64_t shim;
	int32_t result;

	open_process(&attach, pid, true);
	shim = find_shim(&attach);
	if (!shim || read_state(&attach, shim) != SHIM_ATTACH_RECORDS)
		die("process %d (%s) is not attached to", pid,
		    attach.target.name);
	stop_safely(&attach);
	map_stack(&attach, 1);
	result = call_shim(&attach, shim, "profrun_attach_stop", 0);
	finish(&attach);
	/* The thread of a profrun that was killed may have been faster. */
	if (result < 0 && read_state(&attach, shim) != SHIM_ATTACH_DETACHED)
		die("process %d (%s): shim does not stop (%#x)", pid,
		    attach.target.name, (unsigned)result);
	say_done(&attach, is_quiet, "detached from");
	return 0;
}
