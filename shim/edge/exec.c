/*
 * Wrappers of the exec family, which raise `executing` before the call.  In a vfork
 * child, profilers run with the parent's memory.  Also wrappers of the functions that
 * create a child and execute a program in it.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "edge/executed.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/events.h"
#include "runtime/hidden_signals.h"
#include "runtime/kept_signals.h"
#include "runtime/state.h"
#include "sampling/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <unistd.h>

#include <shim/banned.h>

#define FIND(pointer, name) \
	(pointer ? (void)0 : (void)(*(void **)&pointer = lookup_real(name)))

typedef int (*exec_function)(const char *path, char *const arguments[],
			     char *const environment[]);

static exec_function real_execve, real_execvpe;
static int (*real_fexecve)(int fd, char *const arguments[],
			   char *const environment[]);
static int (*real_execveat)(int directory, const char *path,
			    char *const arguments[], char *const environment[],
			    int flags);

/* Returns what edge_leave_out returns. */
static bool raise_executing(int directory, const char *path,
			    char *const environment[])
{
	int before = errno;
	bool hides_shim;

	if (!real_execve) /* before shim's constructor */
		edge_exec_resolve();
	if (state_get() == STATE_RUNNING && path)
		RAISE(executing, path);
	hides_shim = edge_leave_out(directory, path, environment);
	sample_exec_begins();
	kept_exec_begins();
	edge_exec_ends();
	hidden_exec_begins();
	errno = before;
	return hides_shim;
}

/* --- the environment without shim --- */

/* Pointers.  More are mapped: a thread's stack may be smaller than an environment. */
#define ON_STACK_MAX 128

/* What a child of vfork has mapped; its parent unmaps it. */
static __thread void *vforked_memory;
static __thread size_t vforked_size;

/* Returns NULL if there is no memory: the program sees shim then. */
static char **map_room(size_t count)
{
	size_t size = count * sizeof(char *);
	void *memory;

	if (sys_map(size, &memory) < 0)
		return NULL;
	if (edge_is_vfork_child()) {
		vforked_memory = memory;
		vforked_size = size;
	}
	return memory;
}

static void unmap_room(char **room, size_t count)
{
	if (room == vforked_memory)
		vforked_memory = NULL;
	sys_unmap(room, count * sizeof(char *));
}

void edge_exec_vforked(void)
{
	if (vforked_memory)
		sys_unmap(vforked_memory, vforked_size);
	vforked_memory = NULL;
}

/* Replaces @environment; RELEASE() follows. */
#define ADAPT(environment, hides_shim) \
	size_t count_ = (hides_shim) ? executed_room(environment) : 0; \
	bool is_mapped_ = count_ > ON_STACK_MAX; \
	char *stack_[count_ && !is_mapped_ ? count_ : 1]; \
	char **room_ = is_mapped_ ? map_room(count_) : stack_; \
	if (count_ && room_) \
	environment = executed_without_shim(environment, room_)

#define RELEASE() \
	do { \
		if (is_mapped_ && room_) \
			unmap_room(room_, count_); \
	} while (0)

/* Called after exec has returned, which means that it has failed. */
#define FAILED(call) \
	int result_ = call; \
	RELEASE(); \
	return after_failed_exec(result_)

static int after_failed_exec(int result)
{
	int error = errno;

	edge_exec_goes_on();
	sample_exec_failed();
	kept_exec_failed();
	hidden_exec_failed();
	errno = error;
	return result;
}

static int missing(void)
{
	errno = ENOSYS;
	return -1;
}

EDGE int execve(const char *path, char *const arguments[],
		char *const environment[])
{
	bool hides_shim = raise_executing(AT_FDCWD, path, environment);

	ADAPT(environment, hides_shim);
	FAILED(real_execve ? real_execve(path, arguments, environment) :
			     missing());
}

EDGE int execvpe(const char *file, char *const arguments[],
		 char *const environment[])
{
	bool hides_shim = raise_executing(EXECUTED_IN_PATH, file, environment);

	ADAPT(environment, hides_shim);
	FAILED(real_execvpe ? real_execvpe(file, arguments, environment) :
			      missing());
}

EDGE int execv(const char *path, char *const arguments[])
{
	return execve(path, arguments, environ);
}

EDGE int execvp(const char *file, char *const arguments[])
{
	return execvpe(file, arguments, environ);
}

static void name_of_descriptor(int fd, char path[40])
{
	struct text text;

	text_init(&text, path, 40);
	text_add(&text, "/proc/self/fd/");
	text_add_number(&text, (uint64_t)(unsigned)fd);
}

EDGE int fexecve(int fd, char *const arguments[], char *const environment[])
{
	char path[40];
	bool hides_shim;

	name_of_descriptor(fd, path);
	hides_shim = raise_executing(AT_FDCWD, path, environment);
	ADAPT(environment, hides_shim);
	FAILED(real_fexecve ? real_fexecve(fd, arguments, environment) :
			      missing());
}

/* The declaration of execveat says that @path is not NULL, but the kernel would see it. */
__attribute__((noinline)) static bool is_empty(const char *path)
{
	return path && !*path;
}

EDGE int execveat(int directory, const char *path, char *const arguments[],
		  char *const environment[], int flags)
{
	char name[40];
	bool hides_shim;

	name_of_descriptor(directory, name);
	hides_shim = raise_executing(
		directory,
		flags & AT_EMPTY_PATH && is_empty(path) ? name : path,
		environment);
	ADAPT(environment, hides_shim);
	FAILED(real_execveat ? real_execveat(directory, path, arguments,
					     environment, flags) :
			       missing());
}

/* --- single arguments, copied to an array on the stack, as in libc --- */

static size_t count_rest(va_list arguments)
{
	size_t count = 1;

	while (va_arg(arguments, char *))
		count++;
	return count;
}

/* The array fits on the stack, because the caller's arguments are there and have the
 * same size. */
#define GATHER(array, first) \
	va_list list_; \
	size_t count_; \
	va_start(list_, first); \
	count_ = 1 + count_rest(list_); \
	va_end(list_); \
	char *array[count_]; \
	array[0] = (char *)(first); \
	va_start(list_, first); \
	for (size_t i_ = 1; i_ < count_; i_++) \
	array[i_] = va_arg(list_, char *)

EDGE int execl(const char *path, const char *first, ...)
{
	GATHER(arguments, first);
	va_end(list_);
	return execv(path, arguments);
}

EDGE int execlp(const char *file, const char *first, ...)
{
	GATHER(arguments, first);
	va_end(list_);
	return execvp(file, arguments);
}

EDGE int execle(const char *path, const char *first, ...)
{
	char *const *environment;

	GATHER(arguments, first);
	environment = va_arg(list_, char *const *);
	va_end(list_);
	return execve(path, arguments, environment);
}

/* --- children that libc creates: they inherit the caller's signals --- */

#define SPAWNING(result, failure, call) \
	do { \
		hidden_spawn_begins(); \
		result = real ? call : failure; \
		keep_error(hidden_spawn_ends); \
	} while (0)

static void keep_error(void (*call)(void))
{
	int before = errno;

	call();
	errno = before;
}

/* A child is about to execute @name. */
static bool leave_out(int directory, const char *name,
		      char *const environment[])
{
	int before = errno;
	bool hides_shim = edge_leave_out(directory, name, environment);

	errno = before;
	return hides_shim;
}

typedef int (*spawner)(pid_t *, const char *,
		       const posix_spawn_file_actions_t *,
		       const posix_spawnattr_t *, char *const[], char *const[]);

EDGE int posix_spawn(pid_t *pid, const char *path,
		     const posix_spawn_file_actions_t *actions,
		     const posix_spawnattr_t *attributes,
		     char *const arguments[], char *const environment[])
{
	static spawner real;
	bool hides_shim = leave_out(AT_FDCWD, path, environment);
	int result;

	ADAPT(environment, hides_shim);
	FIND(real, "posix_spawn");
	SPAWNING(result, ENOSYS,
		 real(pid, path, actions, attributes, arguments, environment));
	RELEASE();
	return result;
}

EDGE int posix_spawnp(pid_t *pid, const char *file,
		      const posix_spawn_file_actions_t *actions,
		      const posix_spawnattr_t *attributes,
		      char *const arguments[], char *const environment[])
{
	static spawner real;
	bool hides_shim = leave_out(EXECUTED_IN_PATH, file, environment);
	int result;

	ADAPT(environment, hides_shim);
	FIND(real, "posix_spawnp");
	SPAWNING(result, ENOSYS,
		 real(pid, file, actions, attributes, arguments, environment));
	RELEASE();
	return result;
}

/* shim's own code must not call system and popen, so the wrappers have other names in C. */
EDGE int run_command(const char *command) __asm__("system");

int run_command(const char *command)
{
	static int (*real)(const char *);
	int result;

	if (command)
		leave_out(AT_FDCWD, "/bin/sh", environ);
	FIND(real, "system");
	SPAWNING(result, missing(), real(command));
	return result;
}

EDGE void *open_command(const char *command,
			const char *modes) __asm__("popen");

/* Returns a FILE. */
void *open_command(const char *command, const char *modes)
{
	static void *(*real)(const char *, const char *);
	void *result;

	leave_out(AT_FDCWD, "/bin/sh", environ);
	FIND(real, "popen");
	SPAWNING(result, NULL, real(command, modes));
	return result;
}

void edge_exec_resolve(void)
{
	edge_left_out_resolve();
	real_execve = (exec_function)lookup_real("execve");
	real_execvpe = (exec_function)lookup_real("execvpe");
	real_fexecve = (int (*)(int, char *const[], char *const[]))lookup_real(
		"fexecve");
	real_execveat = (int (*)(int, const char *, char *const[],
				 char *const[], int))lookup_real("execveat");
}
