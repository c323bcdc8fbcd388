/*
 * What the coverage profiler writes into its recording, whose room the test gives it.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../hooks/coverage/coverage.c"

/* --- what it needs of shim --- */

static uint64_t memory[1 << 16];
static size_t memory_room; /* of the first piece, in bytes */
static bool grows = true;  /* there are more pieces */
static unsigned opened, lost, noted, blocked;
static char last_line[300];
static void (*on_open)(void);

struct shim_record *shim_record_open(const char *kind, void **first,
				     size_t *room_size, enum shim_lost *cause)
{
	void (*call)(void) = on_open;

	(void)cause;
	cr_assert(eq(str, (char *)kind, "coverage"));
	cr_expect(eq(u32, blocked, 1));
	opened++;
	on_open = NULL;
	if (call)
		call();
	if (memory_room == 0)
		return NULL;
	*first = memory;
	*room_size = memory_room;
	return (struct shim_record *)(void *)memory;
}

/* The second piece, of 8 bytes more than needed. */
void *shim_record_grow(struct shim_record *of, size_t size, size_t *room_size,
		       enum shim_lost *cause)
{
	(void)cause;
	cr_expect(eq(ptr, (void *)of, (void *)memory));
	*room_size = size + 8;
	return grows ? memory + (sizeof(memory) / 2) / sizeof(*memory) : NULL;
}

void shim_record_log(const char *line)
{
	cr_assert(lt(sz, strlen(line), sizeof(last_line)));
	strcpy(last_line, line);
}

void shim_record_lost_other(enum shim_lost_kind kind, enum shim_lost cause,
			    uint64_t count)
{
	cr_expect(eq(int, (int)kind, SHIM_LOST_FUNCTIONS));
	cr_expect(eq(int, (int)cause, SHIM_LOST_OTHER));
	lost += (unsigned)count;
}

uint64_t shim_signals_block(void)
{
	return blocked++;
}

void shim_signals_restore(uint64_t signals)
{
	cr_expect(eq(u64, signals, --blocked));
}

void shim_image_note(shim_function function)
{
	(void)function;
	noted++;
}

struct shim_profiler_handle *shim_profiler_create(struct shim_profiler *of)
{
	(void)of;
	return NULL;
}

enum shim_result shim_profiler_enable_coverage(struct shim_profiler_handle *of)
{
	(void)of;
	return SHIM_E_FAIL;
}

#define SETTER(event) \
	void shim_profiler_on_##event(struct shim_profiler_handle *of, \
				      shim_##event##_callback callback) \
	{ \
		(void)of, (void)callback; \
	}

SETTER(coverage_object)
SETTER(function_reached)
SETTER(forked)
SETTER(recording_began)

int options_start(const char *profiler, const char *arguments,
		  option_taker *take, bool (*start)(void))
{
	(void)profiler, (void)arguments, (void)take;
	return start() ? 0 : -2;
}

/* --- functions --- */

static const struct shim_coverage_functions *block_at(size_t offset)
{
	return (const void *)((const char *)memory + offset);
}

#define BLOCK (sizeof(struct shim_coverage_functions) + 1024 * 8)

Test(coverage_profiler, functions_are_in_blocks_of_1024)
{
	memory_room = 3 * BLOCK;
	for (uint64_t i = 0; i < 2049; i++)
		on_function(NULL, i + 100);
	cr_expect(eq(u32, noted, 2049));
	cr_expect(eq(u32, opened, 1));
	cr_expect(eq(u32, lost, 0));
	for (uint64_t i = 0; i < 3; i++) {
		const struct shim_coverage_functions *block = block_at(i *
								       BLOCK);

		cr_expect(eq(u64, block->kind, SHIM_COVERAGE_KIND_FUNCTIONS));
		cr_expect(eq(u64, block->size, BLOCK));
		cr_expect(eq(u64, block->room, 1024));
		cr_assert(eq(u64, block->count, i < 2 ? 1024 : 1));
		for (uint64_t j = 0; j < block->count; j++)
			cr_assert(eq(u64, block->functions[j],
				     i * 1024 + j + 100));
	}
}

Test(coverage_profiler,
     a_piece_of_the_file_that_is_full_is_followed_by_the_next)
{
	const size_t half = sizeof(memory) / 2;

	memory_room = 2 * BLOCK - 8;
	for (uint64_t i = 0; i < 1025; i++)
		on_function(NULL, i);
	cr_expect(eq(u64, block_at(0)->count, 1024));
	cr_expect(eq(u64, block_at(BLOCK)->kind, 0));
	cr_expect(eq(u64, block_at(half)->kind, SHIM_COVERAGE_KIND_FUNCTIONS));
	cr_expect(eq(u64, block_at(half)->count, 1));
	cr_expect(eq(u64, block_at(half)->functions[0], 1024));
	cr_expect(eq(sz, room_left, 8));
}

Test(coverage_profiler, functions_without_room_are_lost_and_counted)
{
	on_function(NULL, 1);
	on_function(NULL, 2);
	cr_expect(eq(u32, opened, 2));
	cr_expect(eq(u32, lost, 2));
	memory_room = BLOCK;
	grows = false;
	for (uint64_t i = 0; i < 1026; i++)
		on_function(NULL, i);
	cr_expect(eq(u32, lost, 4));
	cr_expect(eq(u64, block_at(0)->count, 1024));
	cr_expect(eq(u32, noted, 1028));
	cr_expect(eq(u32, lock, 0));
}

/* As the child of another thread would, which has forked meanwhile.  The alarm ends the
 * test if the child waits for the lock. */
static void fork_and_add(void)
{
	alarm(10);
	on_forked(NULL);
	blocked--;
	on_function(NULL, 7);
	blocked++;
	cr_expect(eq(u32, lost, 1));
}

Test(coverage_profiler, a_child_adds_functions_though_a_thread_was_adding_one)
{
	on_open = fork_and_add;
	on_function(NULL, 1);
	cr_expect(eq(u32, opened, 2));
	cr_expect(eq(u32, lost, 2));
}

Test(coverage_profiler, a_new_recording_begins_with_blocks_of_its_own)
{
	memory_room = 2 * BLOCK;
	on_function(NULL, 1);
	begin_recording(NULL);
	memset(memory, 0, BLOCK);
	on_function(NULL, 2);
	cr_expect(eq(u32, opened, 2));
	cr_expect(eq(u64, block_at(0)->count, 1));
	cr_expect(eq(u64, block_at(0)->functions[0], 2));
	cr_expect(eq(u64, block_at(BLOCK)->kind, 0));
}

/* --- objects --- */

static const struct shim_coverage_line some_lines[] = { { 4, 1, 0, 2, 0 },
							{ 9, 3, 1, 0, 0 },
							{ 12, 0, 0, 0, 0 } };

static struct shim_coverage_object make_object(uint32_t state)
{
	return (struct shim_coverage_object){
		.start = 0x1000,
		.end = 0x2000,
		.path = "/lib/x.so",
		.state = state,
		.line_count = 3,
		.file_count = 2,
		.files_size = 8,
		.dropped = 5,
		.lines = some_lines,
		.files = "a.c\0b.c",
	};
}

Test(coverage_profiler, an_object_has_its_lines_files_and_path)
{
	struct shim_coverage_object object = make_object(SHIM_COVERAGE_LINES);
	const struct shim_coverage_lines *got = (const void *)memory;
	const char *rest = (const char *)(got + 1) + sizeof(some_lines);
	size_t used = sizeof(*got) + sizeof(some_lines) + 3 + 8 + 10;

	memory_room = sizeof(memory) / 2;
	blocked = 1;
	on_object(NULL, &object);
	cr_expect(eq(u64, got->kind, SHIM_COVERAGE_KIND_LINES));
	cr_expect(eq(u64, got->size, (used + 7) / 8 * 8));
	cr_expect(eq(u64, got->start, 0x1000));
	cr_expect(eq(u64, got->end, 0x2000));
	cr_expect(eq(u32, got->state, SHIM_COVERAGE_LINES));
	cr_expect(eq(u32, got->line_count, 3));
	cr_expect(eq(u32, got->file_count, 2));
	cr_expect(eq(u32, got->files_size, 8));
	cr_expect(eq(u32, got->path_size, 10));
	cr_expect(eq(u32, got->dropped, 5));
	cr_expect(eq(int, memcmp(got + 1, some_lines, sizeof(some_lines)), 0));
	cr_expect(eq(ptr, object.reached, (void *)rest));
	cr_expect(eq(int, memcmp(rest, "\0\0\0a.c\0b.c\0/lib/x.so", 21), 0));
	cr_expect(eq(sz, memory_room - room_left, got->size));
}

static void check_points(bool with_offsets)
{
	struct shim_coverage_object object = make_object(SHIM_COVERAGE_POINTS);
	const struct shim_coverage_points *got = (const void *)memory;
	const uint64_t *counts = (const uint64_t *)(got + 1);
	const uint32_t *offsets = (const uint32_t *)(counts + 3);
	const char *path = (const char *)(offsets + (with_offsets ? 3 : 0));
	size_t used = (size_t)(path + 10 - (const char *)got);

	if (!with_offsets)
		object.lines = NULL;
	memory_room = sizeof(memory) / 2;
	blocked = 1;
	on_object(NULL, &object);
	cr_expect(eq(u64, got->kind, SHIM_COVERAGE_KIND_POINTS));
	cr_expect(eq(u64, got->size, (used + 7) / 8 * 8));
	cr_expect(eq(u64, got->start, 0x1000));
	cr_expect(eq(u64, got->end, 0x2000));
	cr_expect(eq(u64, got->count, 3));
	cr_expect(eq(u32, got->has_offsets, with_offsets));
	cr_expect(eq(u32, got->path_size, 10));
	cr_expect(eq(ptr, object.counts, (void *)counts));
	for (unsigned i = 0; i < 3 && with_offsets; i++)
		cr_expect(eq(u32, offsets[i], some_lines[i].offset));
	cr_expect(eq(str, (char *)path, "/lib/x.so"));
	cr_expect(eq(sz, memory_room - room_left, got->size));
}

Test(coverage_profiler, an_object_with_counters_has_them_and_their_offsets)
{
	check_points(true);
}

Test(coverage_profiler, an_object_with_counters_may_have_no_offsets)
{
	check_points(false);
}

Test(coverage_profiler, an_object_without_room_is_told)
{
	static const char told[] = "not enough memory to record coverage of ";
	static char path[400];
	struct shim_coverage_object object;

	blocked = 1;
	for (int i = 0; i < 2; i++) {
		object = make_object(i ? SHIM_COVERAGE_POINTS :
					 SHIM_COVERAGE_LINES);
		last_line[0] = '\0';
		on_object(NULL, &object);
		cr_expect(eq(int, strncmp(last_line, told, strlen(told)), 0));
		cr_expect(eq(str, last_line + strlen(told), "/lib/x.so"));
		cr_expect(eq(ptr, object.reached, NULL));
		cr_expect(eq(ptr, object.counts, NULL));
	}
	/* As much of a long path as fits. */
	for (size_t size = 210; size < 230; size++) {
		memset(path, 'p', size);
		path[size] = '\0';
		object.path = path;
		on_object(NULL, &object);
		cr_expect(eq(sz, strlen(last_line),
			     size < 215 ? strlen(told) + size : 255));
	}
}
