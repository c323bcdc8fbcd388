/*
 * The profilers' files.  A file grows by chunks: each is allocated on the disk, then
 * mapped, and stays mapped as long as the process lives.
 */
#include "runtime/record.h"

#include "os/clock.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/record_file.h"
#include "runtime/state.h"

#include <errno.h>
#include <shim/record.h>
#include <stdbool.h>

#include <shim/banned.h>

#define PAGE 4096

#define CHUNK_SIZE_MIN (64u << 10)
#define CHUNK_SIZE_MAX (64u << 20)

struct shim_record {
	struct shim_file *file;
	struct record_file *on_disk;
	uint64_t size; /* of the first part and the chunks */
};

static uint32_t files; /* the number of the process's files */

void record_chunks_start(void)
{
	files = 0;
}

/* --- when there is no room --- */

#define MONOTONIC_COARSE 6
#define PAUSE_NS	 1000000000u

/* On a full disk, shim tries no allocation before this time: a failing system call for each
 * record would slow the program down. */
static uint64_t pause_end_ns;
static int pause_error; /* 0: the disk is not known to be full */

static int get_pause_error(void)
{
	uint64_t now_ns;

	ASSERT_LOCKED();
	if (pause_error == 0 || sys_time_ns(MONOTONIC_COARSE, &now_ns) < 0 ||
	    now_ns >= pause_end_ns)
		return 0;
	return pause_error;
}

static void begin_pause(int error)
{
	uint64_t now_ns;

	if (sys_time_ns(MONOTONIC_COARSE, &now_ns) < 0)
		return;
	pause_end_ns = now_ns + PAUSE_NS;
	pause_error = error;
}

/* Runs work(argument), which allocates disk space, unless the disk was full less than
 * PAUSE_NS ago.  State lock held. */
static int run_unless_full(int (*work)(void *argument), void *argument)
{
	int r = get_pause_error();

	ASSERT_LOCKED();
	if (r < 0)
		return r;
	r = work(argument);
	if (r == -ENOSPC || r == -EDQUOT)
		begin_pause(r);
	else if (r == 0)
		pause_error = 0;
	return r;
}

/* --- the profilers' files --- */

static void file_name(uint32_t number, const char *kind, char name[64])
{
	struct text text;

	text_init(&text, name, 64);
	text_add_number(&text, number);
	text_add(&text, ".");
	text_add(&text, kind);
}

struct request {
	const char *kind;
	struct shim_record *record;
	void *memory;
	size_t least;
	size_t size;
	enum shim_lost cause;
};

static void add_chunk(struct shim_file *file, uint64_t offset, uint64_t size,
		      void *memory)
{
	file->chunk[file->chunks] = (struct shim_chunk){
		.offset = offset,
		.size = size,
		.address = (uint64_t)memory,
	};
	__atomic_store_n(&file->chunks, file->chunks + 1, __ATOMIC_RELEASE);
}

static int make_file(void *argument)
{
	struct request *request = argument;
	size_t size = CHUNK_SIZE_MIN;
	struct record_file *on_disk;
	struct shim_record *record;
	struct shim_file *file;
	char name[64];
	void *memory;
	int r;

	if (!record_meta())
		return -ENOENT;
	r = sys_map(PAGE, &memory);
	if (r < 0)
		return r;
	record = memory;
	file_name(files, request->kind, name);
	r = record_create(name, size, &on_disk, &memory);
	if (r < 0) {
		sys_unmap(record, PAGE);
		return r;
	}
	file = memory;
	*file = (struct shim_file){
		.magic = SHIM_FILE_MAGIC,
		.header_size = PAGE,
		.pid = record_meta()->pid,
		.tid = (uint32_t)sys_gettid(),
		.number = files,
	};
	for (size_t i = 0; i < sizeof(file->kind) - 1 && request->kind[i]; i++)
		file->kind[i] = request->kind[i];
	*record = (struct shim_record){ file, on_disk, size };
	files++;
	request->record = record;
	request->memory = (char *)memory + PAGE;
	request->size = size - PAGE;
	add_chunk(file, PAGE, request->size, request->memory);
	__atomic_store_n(&file->version, SHIM_FORMAT_VERSION, __ATOMIC_RELEASE);
	clock_note(record_meta());
	return 0;
}

static int open_file(void *argument)
{
	return run_unless_full(make_file, argument);
}

struct shim_record *shim_record_open(const char *kind, void **memory,
				     size_t *size, enum shim_lost *cause)
{
	struct request request = { .kind = kind };
	int r;

	if (!kind || !memory || !size || !cause)
		return NULL;
	r = state_call_locked(open_file, &request);
	if (r < 0) {
		*cause = record_note_failure(r);
		return NULL;
	}
	*memory = request.memory;
	*size = request.size;
	return request.record;
}

static int extend_file(void *argument)
{
	struct request *request = argument;
	struct shim_record *record = request->record;
	struct shim_file *file = record->file;
	uint64_t size = record->size / 2, offset;
	int r;

	if (file->chunks >= SHIM_FILE_CHUNKS)
		return -EOVERFLOW;
	if (size < request->least)
		size = request->least;
	if (size < CHUNK_SIZE_MIN)
		size = CHUNK_SIZE_MIN;
	if (size > CHUNK_SIZE_MAX)
		size = CHUNK_SIZE_MAX;
	size = (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	offset = record_file_end(record->on_disk);
	r = record_file_extend(record->on_disk, size, &request->memory);
	if (r == -ENOSPC && size > CHUNK_SIZE_MIN &&
	    request->least <= CHUNK_SIZE_MIN) {
		size = CHUNK_SIZE_MIN; /* the last free space of the disk */
		r = record_file_extend(record->on_disk, size, &request->memory);
	}
	if (r < 0)
		return r;
	add_chunk(file, offset, size, request->memory);
	record->size += size;
	request->size = size;
	clock_note(record_meta());
	return 0;
}

static int grow_file(void *argument)
{
	return run_unless_full(extend_file, argument);
}

void *shim_record_grow(struct shim_record *record, size_t least, size_t *size,
		       enum shim_lost *cause)
{
	struct request request = { .record = record, .least = least };
	int r;

	if (!record || !size || !cause)
		return NULL;
	r = state_call_locked(grow_file, &request);
	if (r < 0) {
		*cause = record_note_failure(r);
		return NULL;
	}
	*size = request.size;
	return request.memory;
}

/* --- writing without mapping --- */

struct writing {
	struct shim_record *record;
	const void *memory;
	size_t size;
	uint64_t offset;
};

static int write_part(void *argument)
{
	struct writing *writing = argument;
	int r = record_file_write(writing->record->on_disk, writing->offset,
				  writing->memory, writing->size);

	if (r == 0)
		clock_note(record_meta());
	return r;
}

static int write_file(void *argument)
{
	return run_unless_full(write_part, argument);
}

bool shim_record_write(struct shim_record *record, uint64_t offset,
		       const void *memory, size_t size, enum shim_lost *cause)
{
	struct writing writing = { record, memory, size, offset };
	int r;

	if (!record || !cause)
		return false;
	r = state_call_locked(write_file, &writing);
	if (r < 0)
		*cause = record_note_failure(r);
	return r == 0;
}
