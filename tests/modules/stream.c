/*
 * A profiler for tests that writes down every event.  It is preloaded beside
 * libshim.so, so it needs no module, and it finds shim through weak symbols.
 *
 *     STREAM             the file, mapped: a header, then records (stream.py)
 *     STREAM_EVENTS      which events: letters of the table below
 *     STREAM_MAX         records at most; beyond, events are only counted
 *     STREAM_NO_CLAUSES  do not enable exception_clause
 *     STREAM_FORK        fork in the thread_started callback
 *     STREAM_ERRNO       spoil errno in every callback
 *     STREAM_LOCK        in every callback that may wait, wait for another thread
 *                        that takes shim's lock; @ if it does not get it
 */
#define _GNU_SOURCE
#include <shim/hooks.h>

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_enable_clauses
#pragma weak shim_filters_invalidate
#pragma weak shim_thread_create
#pragma weak shim_profiler_set_call_instrumentation_filter_callback

#define SHIM_DEFINE_EVENT(name, context, flag, parameters)                     \
	__typeof__(shim_profiler_on_##name) shim_profiler_on_##name \
		__attribute__((weak));
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT

struct record {
	uint32_t kind;
	uint32_t pid, tid;
	int32_t depth; /* calls open in the thread */
	uint64_t a, b;
	char text[96];
};

struct header {
	uint64_t base; /* of the program */
	uint64_t count;
	uint64_t counts[128]; /* of each kind */
	int64_t depth_max;
};

static struct header *header;
static struct record *records;
static uint64_t max = 100000;
static int spoils_errno;
static __thread int depth;

/* --- the second thread --- */

static int locks; /* the process in which this thread exists */
static unsigned long asked, answered;

static void answer(void *unused)
{
	(void)unused;
	for (;;) {
		unsigned long now = __atomic_load_n(&asked, __ATOMIC_ACQUIRE);

		if (now != answered)
			shim_filters_invalidate();
		__atomic_store_n(&answered, now, __ATOMIC_RELEASE);
		usleep(20);
	}
}

/* Two threads may be here: the answer of either is valid for both. */
static int is_locked(int kind)
{
	unsigned long mine;

	if (locks != getpid() || !strchr("ibelmnopstuvw!", kind))
		return 0;
	mine = __atomic_add_fetch(&asked, 1, __ATOMIC_ACQ_REL);
	for (int i = 0; i < 20000; i++) {
		if (__atomic_load_n(&answered, __ATOMIC_ACQUIRE) >= mine)
			return 0;
		usleep(100);
	}
	return 1;
}

static void put(int kind, uint64_t a, uint64_t b, const char *text)
{
	uint64_t at;
	struct record *record;

	if (spoils_errno)
		errno = 4711;
	if (!header)
		return;
	__atomic_add_fetch(&header->counts[kind], 1, __ATOMIC_RELAXED);
	if (is_locked(kind))
		__atomic_add_fetch(&header->counts['@'], 1, __ATOMIC_RELAXED);
	if (kind == 'E' && ++depth > header->depth_max)
		header->depth_max = depth;
	if (kind == 'L' || kind == 'T' || kind == 'X')
		depth--;
	at = __atomic_fetch_add(&header->count, 1, __ATOMIC_RELAXED);
	if (at >= max)
		return;
	record = &records[at];
	record->pid = (uint32_t)syscall(SYS_getpid);
	record->tid = (uint32_t)syscall(SYS_gettid);
	record->depth = depth;
	record->a = a;
	record->b = b;
	for (size_t i = 0; text && text[i] && i + 1 < sizeof(record->text); i++)
		record->text[i] = text[i];
	__atomic_store_n(&record->kind, (uint32_t)kind, __ATOMIC_RELEASE);
}

/* --- the events and their letters --- */

typedef struct shim_profiler *P;

static void on_initialized(P p)
{
	(void)p;
	put('i', 0, 0, NULL);
}

static void on_begin(P p)
{
	(void)p;
	put('b', 0, 0, NULL);
}

static void on_end(P p)
{
	(void)p;
	put('e', 0, 0, NULL);
}

static void on_forked(P p)
{
	(void)p;
	put('f', 0, 0, NULL);
}

static void on_executing(P p, const char *path)
{
	(void)p;
	put('x', 0, 0, path);
}

static void on_loading(P p, const char *path)
{
	(void)p;
	put('l', 0, 0, path);
}

static void on_failed(P p, const char *path, const char *reason)
{
	(void)p, (void)path;
	put('m', 0, 0, reason);
}

static void on_loaded(P p, shim_image image)
{
	(void)p;
	put('n', image, 0, NULL);
}

static void on_unloading(P p, shim_image image)
{
	(void)p;
	put('o', image, 0, NULL);
}

static void on_unloaded(P p, uintptr_t low, uintptr_t high, uint32_t generation)
{
	(void)p, (void)generation;
	put('p', low, high, NULL);
}

static int forks;

static void on_started(P p, shim_thread thread)
{
	(void)p;
	put('s', thread, 0, NULL);
	if (forks) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
	}
}

static void on_stopping(P p, shim_thread thread)
{
	(void)p;
	put('t', thread, 0, NULL);
}

static void on_stopped(P p, shim_thread thread)
{
	(void)p;
	put('u', thread, 0, NULL);
}

static void on_exited(P p, shim_thread thread)
{
	(void)p;
	put('v', thread, 0, NULL);
}

static void on_name(P p, shim_thread thread, const char *name)
{
	(void)p;
	put('w', thread, 0, name);
}

static void on_enter(P p, shim_function f, struct shim_call_context *context)
{
	(void)p, (void)context;
	put('E', f, 0, NULL);
}

static void on_leave(P p, shim_function f, struct shim_call_context *context)
{
	(void)p, (void)context;
	put('L', f, 0, NULL);
}

static void on_tail(P p, shim_function f, shim_function target)
{
	(void)p;
	put('T', f, target, NULL);
}

static void on_exception_leave(P p, shim_function f, const void *exception)
{
	(void)p;
	put('X', f, (uintptr_t)exception, NULL);
}

/* std::type_info: a table of functions, then the name. */
static void on_throw(P p, const void *exception, const void *type)
{
	(void)p;
	put('!', (uintptr_t)exception, 0,
	    type ? ((const char *const *)type)[1] : "none");
}

static void on_clause(P p, shim_function f, uint32_t index, uint32_t type,
		      const void *exception)
{
	(void)p, (void)exception;
	put('?', f, (uint64_t)type << 32 | index, NULL);
}

static void on_catch(P p, const void *exception)
{
	(void)p;
	put('{', (uintptr_t)exception, 0, NULL);
}

static void on_caught(P p)
{
	(void)p;
	put('}', 0, 0, NULL);
}

static enum shim_call_instrumentation_flags all(P p, shim_function f)
{
	(void)p, (void)f;
	return SHIM_CALL_INSTRUMENTATION_ENTER |
	       SHIM_CALL_INSTRUMENTATION_LEAVE |
	       SHIM_CALL_INSTRUMENTATION_TAIL_CALL |
	       SHIM_CALL_INSTRUMENTATION_EXCEPTION_LEAVE;
}

/* --- start --- */

static int note_base(struct dl_phdr_info *object, size_t size, void *unused)
{
	(void)size, (void)unused;
	header->base = object->dlpi_addr;
	return 1;
}

static void map(const char *path)
{
	size_t size;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *memory;

	if (getenv("STREAM_MAX"))
		max = strtoull(getenv("STREAM_MAX"), NULL, 10);
	size = sizeof(*header) + max * sizeof(*records);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (memory == MAP_FAILED)
		return;
	header = memory;
	records = (void *)(header + 1);
	dl_iterate_phdr(note_base, NULL);
}

static const char *wanted;

#define ON(letter, name, callback) \
	do { \
		if (strchr(wanted, letter)) \
			shim_profiler_on_##name(handle, callback); \
	} while (0)

__attribute__((constructor)) static void begin(void)
{
	struct shim_profiler_handle *handle;

	wanted = getenv("STREAM_EVENTS");
	if (!shim_profiler_create || !getenv("STREAM") || !wanted)
		return;
	map(getenv("STREAM"));
	forks = getenv("STREAM_FORK") != NULL;
	spoils_errno = getenv("STREAM_ERRNO") != NULL;
	if (getenv("STREAM_LOCK") && shim_thread_create(answer, NULL) == SHIM_OK)
		locks = getpid();
	handle = shim_profiler_create(NULL);
	ON('i', runtime_initialized, on_initialized);
	ON('b', runtime_shutdown_begin, on_begin);
	ON('e', runtime_shutdown_end, on_end);
	ON('f', forked, on_forked);
	ON('x', executing, on_executing);
	ON('l', image_loading, on_loading);
	ON('m', image_failed, on_failed);
	ON('n', image_loaded, on_loaded);
	ON('o', image_unloading, on_unloading);
	ON('p', image_unloaded, on_unloaded);
	ON('s', thread_started, on_started);
	ON('t', thread_stopping, on_stopping);
	ON('u', thread_stopped, on_stopped);
	ON('v', thread_exited, on_exited);
	ON('w', thread_name, on_name);
	ON('E', method_enter, on_enter);
	ON('L', method_leave, on_leave);
	ON('T', method_tail_call, on_tail);
	ON('X', method_exception_leave, on_exception_leave);
	ON('!', exception_throw, on_throw);
	ON('?', exception_clause, on_clause);
	ON('{', exception_catcher_enter, on_catch);
	ON('}', exception_catcher_leave, on_caught);
	if (strchr(wanted, 'E'))
		shim_profiler_set_call_instrumentation_filter_callback(handle,
								       all);
	if (strchr(wanted, '?') && !getenv("STREAM_NO_CLAUSES"))
		shim_profiler_enable_clauses(handle);
}
