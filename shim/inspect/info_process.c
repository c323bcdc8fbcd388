/* Answers queries of profilers about threads and the process. */
#define _GNU_SOURCE
#include "image/enumeration.h"
#include "image/image.h"
#include "image/symbols.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/contract.h"
#include "runtime/output.h"

#include <fcntl.h>
#include <shim/info.h>

#include <shim/banned.h>

/* --- threads --- */

static bool is_of_program(const struct thread *thread)
{
	uint32_t state = __atomic_load_n(&thread->state, __ATOMIC_SEQ_CST);

	return !(state & (THREAD_OWN | THREAD_ENDED));
}

/* Whether @id still runs.  False also if it ended without shim's knowledge, or if
 * another thread uses the record meanwhile. */
static bool is_running(const struct thread *thread, shim_thread id)
{
	return is_of_program(thread) &&
	       sys_is_alive(sys_getpid(), (int)thread->tid) &&
	       __atomic_load_n(&thread->id, __ATOMIC_SEQ_CST) == id;
}

enum shim_result shim_thread_current(shim_thread *thread)
{
	const struct thread *self = thread_current;

	ENTRY_ASYNC();
	if (!thread)
		return SHIM_E_INVALIDARG;
	if (!self || !is_of_program(self))
		return SHIM_E_NOT_MANAGED_THREAD;
	*thread = self->id;
	return SHIM_OK;
}

/* Reads the thread's current name.  Stores its first name if that fails. */
static void read_name(const struct thread *thread, char name[16])
{
	char path[48];
	struct text text;
	long size = 0;
	int fd;

	text_init(&text, path, sizeof(path));
	text_add(&text, "/proc/self/task/");
	text_add_number(&text, thread->tid);
	text_add(&text, "/comm");
	fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd >= 0) {
		size = sys_read(fd, name, 16);
		sys_close(fd);
	}
	if (size > 0) {
		name[size - 1] = '\0'; /* a newline */
		return;
	}
	for (unsigned i = 0; i < 16; i++)
		name[i] = thread->name[i];
	name[15] = '\0';
}

enum shim_result shim_thread_info(shim_thread thread, uint32_t *tid,
				  uintptr_t *pthread, uint32_t count,
				  uint32_t *total, char *name)
{
	const struct thread *found;
	uintptr_t handle;
	char now[16];
	bool has_been;
	uint32_t id;

	ENTRY_SYNC();
	if (!output_is_valid(count, name))
		return SHIM_E_INVALIDARG;
	found = thread_find(thread, &has_been);
	if (!found && !has_been)
		return SHIM_E_INVALIDARG;
	if (!found)
		return SHIM_E_DATAINCOMPLETE;
	id = found->tid;
	handle = found->pthread;
	read_name(found, now);
	if (!is_running(found, thread))
		return SHIM_E_DATAINCOMPLETE;
	if (tid)
		*tid = id;
	if (pthread)
		*pthread = handle;
	output_text(now, text_length(now) + 1, count, total, name);
	return SHIM_OK;
}

struct threads {
	uint64_t *ids;
	uint32_t count, room;
};

static bool add_thread(struct thread *thread, void *argument)
{
	struct threads *threads = argument;
	shim_thread id = __atomic_load_n(&thread->id, __ATOMIC_ACQUIRE);

	if (id == 0 || !is_running(thread, id))
		return true;
	if (threads->count < threads->room)
		threads->ids[threads->count] = id;
	threads->count++;
	return true;
}

enum shim_result shim_thread_enumerate(struct shim_enum **enumeration)
{
	struct threads threads = { 0 };
	struct shim_enum *made;
	enum shim_result r;
	uint32_t room;

	ENTRY_SYNC();
	if (!enumeration)
		return SHIM_E_INVALIDARG;
	thread_each(add_thread, &threads);
	for (;;) {
		room = threads.count + 16;
		r = enumeration_make(room, &made, &threads.ids);
		if (r != SHIM_OK)
			return r;
		threads.count = 0;
		threads.room = room;
		thread_each(add_thread, &threads);
		if (threads.count <= room)
			break;
		shim_enum_destroy(made);
	}
	enumeration_fill(made, threads.count);
	*enumeration = made;
	return SHIM_OK;
}

/* --- the process --- */

/* Defined by glibc only. */
extern const char *gnu_get_libc_version(void) __attribute__((weak));

static char version[512];

static void add_compiler(struct text *text)
{
	struct image_entry *const *images;
	uint32_t count = image_list(&images);
	char path[IMAGE_PATH_SIZE], compiler[128];
	long size = sys_read_link("/proc/self/exe", path, sizeof(path) - 1);

	if (size <= 0)
		return;
	path[size] = '\0';
	for (uint32_t i = 0; i < count; i++) {
		if (!text_equal(images[i]->path, path))
			continue;
		symbols_read_compiler(images[i], compiler, sizeof(compiler));
		if (compiler[0]) {
			text_add(text, ", ");
			text_add(text, compiler);
		}
		return;
	}
}

static int make_version(void *unused)
{
	struct text text;
	char kernel[160];

	(void)unused;
	if (version[0])
		return 0;
	text_init(&text, version, sizeof(version));
	text_add(&text, "shim " SHIM_VERSION);
	if (gnu_get_libc_version) {
		text_add(&text, ", glibc ");
		text_add(&text, gnu_get_libc_version());
	}
	if (sys_kernel(kernel, sizeof(kernel)) == 0) {
		text_add(&text, ", ");
		text_add(&text, kernel);
	}
	add_compiler(&text);
	return 0;
}

/* The @n-th number of SHIM_VERSION. */
static uint16_t version_number(unsigned n)
{
	const char *at = SHIM_VERSION;

	while (n > 0 && *at)
		n -= *at++ == '.';
	return (uint16_t)text_read_decimal(&at);
}

enum shim_result shim_runtime_info(uint16_t *major, uint16_t *minor,
				   uint16_t *patch, uint32_t count,
				   uint32_t *total, char *text)
{
	ENTRY_SYNC();
	if (!output_is_valid(count, text))
		return SHIM_E_INVALIDARG;
	state_call_locked(make_version, NULL);
	if (major)
		*major = version_number(0);
	if (minor)
		*minor = version_number(1);
	if (patch)
		*patch = version_number(2);
	output_text(version, text_length(version) + 1, count, total, text);
	return SHIM_OK;
}

struct process {
	uint32_t count;
	uint32_t *total;
	char *path;
	enum shim_result result;
};

static int read_path(void *argument)
{
	static char path[4097];
	struct process *process = argument;
	long size = sys_read_link("/proc/self/exe", path, sizeof(path) - 1);

	if (size < 0)
		return (int)size;
	path[size] = '\0';
	output_text(path, (size_t)size + 1, process->count, process->total,
		    process->path);
	process->result = SHIM_OK;
	return 0;
}

enum shim_result shim_process_info(uint32_t *pid, uint32_t count,
				   uint32_t *total, char *path)
{
	struct process process = { count, total, path, SHIM_E_FAIL };

	ENTRY_MAY_BLOCK();
	if (!output_is_valid(count, path))
		return SHIM_E_INVALIDARG;
	state_call_locked(read_path, &process);
	if (process.result == SHIM_OK && pid)
		*pid = (uint32_t)sys_getpid();
	return process.result;
}
