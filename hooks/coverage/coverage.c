/*
 * The coverage profiler: `-p coverage`.  It records the lines and functions that were
 * reached.
 *
 * An object's lines go into the recording when they are first read.  Each line has a
 * byte there, which is set when the line is reached.  The byte exists only in the
 * recording, so the reached lines are on disk however the program ends.  Fork children
 * set the bytes of their parent's recording.
 */
#include "options/start.h"

#include <shim/coverage.h>
#include <shim/record.h>

#include <shim/banned.h>

#define FUNCTIONS_ROOM 1024

static struct shim_record *record;
static struct shim_coverage_functions *functions;

/* --- room --- */

/* The unused part of the file's last chunk. */
static char *room;
static size_t room_left;

static void *allocate(size_t size)
{
	enum shim_lost cause;
	void *memory;

	size = (size + 7) & ~(size_t)7;
	if (!record) {
		record = shim_record_open(SHIM_COVERAGE_KIND, &memory,
					  &room_left, &cause);
		if (!record)
			return NULL;
		room = memory;
	}
	if (size <= room_left) {
		memory = room;
		room += size;
		room_left -= size;
		return memory;
	}
	memory = shim_record_grow(record, size, &room_left, &cause);
	if (!memory) {
		room_left = 0;
		return NULL;
	}
	room = (char *)memory + size;
	room_left -= size;
	return memory;
}

/* --- lines --- */

static size_t text_size(const char *text)
{
	size_t size = 1;

	while (*text++)
		size++;
	return size;
}

static void copy_bytes(void *to, const void *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = ((const char *)from)[i];
}

/* The line of the log has as much of the path as fits. */
static void log_lost(const char *path)
{
	char line[256] = "not enough memory to record coverage of ";
	size_t length = text_size(line) - 1, more = text_size(path);

	if (more > sizeof(line) - length)
		more = sizeof(line) - length;
	copy_bytes(line + length, path, more);
	line[sizeof(line) - 1] = '\0';
	shim_record_log(line);
}

static void keep_points(struct shim_coverage_object *object)
{
	size_t counts_size = object->line_count * sizeof(uint64_t);
	size_t path_size = text_size(object->path);
	size_t size = sizeof(struct shim_coverage_points) + counts_size +
		      (object->lines ? object->line_count * sizeof(uint32_t) :
				       0) +
		      path_size;
	struct shim_coverage_points *to = allocate(size);
	uint32_t *offsets;

	if (!to) {
		log_lost(object->path);
		return;
	}
	to->start = object->start;
	to->end = object->end;
	to->count = object->line_count;
	to->has_offsets = object->lines != NULL;
	to->path_size = (uint32_t)path_size;
	object->counts = (uint64_t *)(to + 1);
	offsets = (uint32_t *)(object->counts + object->line_count);
	for (uint32_t i = 0; object->lines && i < object->line_count; i++)
		*offsets++ = object->lines[i].offset;
	copy_bytes(offsets, object->path, path_size);
	to->size = (size + 7) & ~(size_t)7;
	__atomic_store_n(&to->kind, SHIM_COVERAGE_KIND_POINTS,
			 __ATOMIC_RELEASE);
}

static void on_object(struct shim_profiler *profiler,
		      struct shim_coverage_object *object)
{
	size_t lines_size = object->line_count *
			    sizeof(struct shim_coverage_line);
	size_t path_size = text_size(object->path);
	size_t size = sizeof(struct shim_coverage_lines) + lines_size +
		      object->line_count + object->files_size + path_size;
	struct shim_coverage_lines *to;
	char *at;

	(void)profiler;
	if (object->state == SHIM_COVERAGE_POINTS) {
		keep_points(object);
		return;
	}
	to = allocate(size);
	if (!to) {
		log_lost(object->path);
		return;
	}
	to->start = object->start;
	to->end = object->end;
	to->state = object->state;
	to->line_count = object->line_count;
	to->file_count = object->file_count;
	to->files_size = object->files_size;
	to->path_size = (uint32_t)path_size;
	to->dropped = object->dropped;
	at = (char *)(to + 1);
	copy_bytes(at, object->lines, lines_size);
	at += lines_size;
	object->reached = (uint8_t *)at;
	at += object->line_count;
	copy_bytes(at, object->files, object->files_size);
	copy_bytes(at + object->files_size, object->path, path_size);
	to->size = (size + 7) & ~(size_t)7;
	__atomic_store_n(&to->kind, SHIM_COVERAGE_KIND_LINES, __ATOMIC_RELEASE);
}

/* --- functions --- */

static struct shim_coverage_functions *make_functions(void)
{
	size_t size = sizeof(*functions) + FUNCTIONS_ROOM * sizeof(uint64_t);
	struct shim_coverage_functions *made = allocate(size);

	if (!made)
		return NULL;
	made->room = FUNCTIONS_ROOM;
	made->size = size;
	__atomic_store_n(&made->kind, SHIM_COVERAGE_KIND_FUNCTIONS,
			 __ATOMIC_RELEASE);
	return made;
}

static uint32_t lock;

/* False while another thread holds the lock: for a store, or once in 1024 functions for
 * a system call. */
static bool try_lock(void)
{
	uint32_t none = 0;

	return __atomic_compare_exchange_n(&lock, &none, 1, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void on_function(struct shim_profiler *profiler, shim_function function)
{
	uint64_t signals = shim_signals_block();
	struct shim_coverage_functions *list;

	(void)profiler;
	while (!try_lock())
		;
	/* Another recording may begin meanwhile: begin_recording() cannot wait for threads
	 * that an attach has stopped. */
	list = functions;
	if (!list || list->count == list->room)
		functions = list = make_functions();
	if (list) {
		list->functions[list->count] = function;
		__atomic_store_n(&list->count, list->count + 1,
				 __ATOMIC_RELEASE);
	} else {
		shim_record_lost_other(SHIM_LOST_FUNCTIONS, SHIM_LOST_OTHER, 1);
	}
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	shim_signals_restore(signals);
	shim_image_note(function);
}

/* --- the process --- */

/* The lines and functions reached so far stay in the former file: the parent's, or that of
 * the recording before. */
static void begin_recording(struct shim_profiler *profiler)
{
	(void)profiler;
	record = NULL;
	functions = NULL;
	room_left = 0;
}

/* The thread that has the lock may have stayed in the parent. */
static void on_forked(struct shim_profiler *profiler)
{
	begin_recording(profiler);
	lock = 0;
}

/* The report reads the label from the settings. */
static bool start_coverage(void)
{
	struct shim_profiler_handle *handle;

	handle = shim_profiler_create(NULL);
	if (!handle || shim_profiler_enable_coverage(handle) != SHIM_OK) {
		shim_record_log("coverage: the lines of this program cannot "
				"be recorded");
		return false;
	}
	shim_profiler_on_coverage_object(handle, on_object);
	shim_profiler_on_function_reached(handle, on_function);
	shim_profiler_on_forked(handle, on_forked);
	shim_profiler_on_recording_began(handle, begin_recording);
	return true;
}

BUILTIN(coverage, NULL, start_coverage,
	.stays = "each line is recorded once, when it is reached first, and "
		 "costs nothing afterwards");
