/*
 * What the locks profiler writes about waits, in a tree that the test is.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "../../hooks/locks/locks.c"

/* --- what it needs of the engine and of shim --- */

static struct tree tree;
static struct stack main_stack = { .low = 0, .high = 1ull << 47 };
static struct shim_node root = { .frame = ~0ull };
static struct shim_node caller = { .parent = (uint64_t)&root, .function = 77 };
static struct shim_lock_node lock_nodes[4];
static uint64_t keys[4][NODE_MAP_WORDS];
static unsigned node_count, lost;
static enum shim_lost lost_cause;
static bool has_memory = true, has_tree = true;

struct tree *trees = &tree;

void shim_image_note(shim_function function)
{
	(void)function;
}

void *shim_memory_map(size_t size)
{
	static struct waits waits;

	cr_assert(eq(sz, size, sizeof(waits)));
	return has_memory ? &waits : NULL;
}

void shim_record_lost_other(enum shim_lost_kind kind, enum shim_lost cause,
			    uint64_t count)
{
	cr_expect(eq(int, (int)kind, SHIM_LOST_WAITS));
	lost_cause = cause;
	lost += (unsigned)count;
}

struct shim_node *tree_find_caller(struct place *place, uintptr_t sp)
{
	(void)sp;
	*place = (struct place){ &tree, &main_stack, &caller };
	return has_tree ? &caller : NULL;
}

struct shim_node *path_unwind(struct tree *of, struct shim_node *from)
{
	(void)of;
	return from;
}

struct map_node *node_map_find(const struct node_map *table,
			       const uint64_t key[NODE_MAP_WORDS])
{
	(void)table;
	for (unsigned i = 0; i < node_count; i++)
		if (__builtin_memcmp(keys[i], key, sizeof(keys[i])) == 0)
			return (struct map_node *)&lock_nodes[i];
	return NULL;
}

struct map_node *node_map_add(struct node_map **table, struct tree *of,
			      const uint64_t key[NODE_MAP_WORDS], size_t size,
			      uint64_t function)
{
	(void)table, (void)of, (void)size;
	cr_assert(lt(u32, node_count, 4));
	__builtin_memcpy(keys[node_count], key, sizeof(keys[0]));
	lock_nodes[node_count].function = function;
	return (struct map_node *)&lock_nodes[node_count++];
}

void node_map_image_gone(struct node_map *table, unsigned number, uintptr_t low,
			 uintptr_t high, uint64_t gone)
{
	(void)table, (void)number, (void)low, (void)high, (void)gone;
}

enum shim_result shim_lock_holder(const struct shim_lock *lock, uint32_t *tid)
{
	(void)lock, (void)tid;
	return SHIM_E_FAIL;
}

struct tree *tree_of_task(uint32_t tid)
{
	(void)tid;
	return NULL;
}

struct shim_node *tree_look_at(const struct tree *of)
{
	(void)of;
	return NULL;
}

struct tree *tree_own(void)
{
	return &tree;
}

struct stack *tree_known_stack(struct tree *of, uintptr_t sp)
{
	(void)of, (void)sp;
	return &main_stack;
}

unsigned path_add_slot(void)
{
	return 1;
}

bool tree_need_paths(const char *profiler)
{
	(void)profiler;
	return true;
}

const char *tree_paths_are_too_late(void)
{
	return NULL;
}

uint64_t shim_clock_of_tick(const volatile uint64_t *tick, uint64_t value)
{
	(void)tick;
	return value;
}

void tree_begin(void)
{
}

bool tree_return_paths(const char *profiler)
{
	(void)profiler;
	return true;
}

void tree_leave_paths(void)
{
}

void shim_record_log(const char *line)
{
	(void)line;
}

struct shim_profiler_handle *shim_profiler_create(struct shim_profiler *of)
{
	(void)of;
	return NULL;
}

enum shim_result shim_profiler_enable_locks(struct shim_profiler_handle *of)
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

SETTER(lock_contention)
SETTER(lock_acquired)
SETTER(lock_failed)
SETTER(jump_taken)
SETTER(frames_unwound)
SETTER(thread_ended)
SETTER(forked)
SETTER(recording_began)
SETTER(image_unloaded)

int options_start(const char *profiler, const char *arguments,
		  option_taker *take, bool (*start)(void))
{
	(void)profiler, (void)arguments, (void)take;
	return start() ? 0 : -2;
}

/* --- the tests --- */

static struct shim_lock begin_wait(uintptr_t address, uint64_t began)
{
	return (struct shim_lock){ .address = address, .began = began };
}

Test(locks_profiler, waits_are_added_up_by_path_and_lock)
{
	struct shim_lock lock;

	for (uint64_t i = 0; i < 10; i++) {
		lock = begin_wait(0x1000 + i % 2 * 8, 100 * i + 1);
		on_contention(NULL, &lock);
		cr_expect(eq(u64, lock_nodes[i % 2].start, 100 * i + 1));
		lock.ended = 100 * i + 11 + i;
		on_acquired(NULL, &lock);
	}
	cr_expect(eq(u32, node_count, 2));
	for (unsigned i = 0; i < 2; i++) {
		cr_expect(eq(u64, lock_nodes[i].function, SHIM_NODE_LOCK));
		cr_expect(eq(u64, keys[i][0], (uintptr_t)&caller));
		cr_expect(eq(u64, keys[i][1], 0x1000 + i * 8));
		cr_expect(eq(u64, lock_nodes[i].waits, 5));
		cr_expect(eq(u64, lock_nodes[i].time, i ? 75 : 70));
		cr_expect(eq(u64, lock_nodes[i].max, i ? 19 : 18));
		cr_expect(zero(u64, lock_nodes[i].failures));
		cr_expect(zero(u64, lock_nodes[i].start));
	}
	cr_expect(zero(u32, lost));
}

Test(locks_profiler, waits_without_memory_are_lost_and_counted)
{
	struct shim_lock lock = begin_wait(0x1000, 1);

	has_memory = false;
	on_contention(NULL, &lock);
	cr_expect(zero(u64, lock.note));
	lock.ended = 5;
	on_acquired(NULL, &lock);
	cr_expect(eq(u32, lost, 1));
	cr_expect(eq(int, (int)lost_cause, SHIM_LOST_MEMORY));
	cr_expect(zero(u32, node_count));
	lock = (struct shim_lock){ .address = 0x1000, .error = 16 };
	on_failed(NULL, &lock);
	cr_expect(eq(u32, lost, 2));
	has_tree = false;
	lock = begin_wait(0x1000, 1);
	on_contention(NULL, &lock);
	cr_expect(eq(u32, lost, 3));
	/* Later there is some. */
	has_memory = has_tree = true;
	lock = begin_wait(0x1000, 1);
	on_contention(NULL, &lock);
	cr_expect(eq(u32, lost, 3));
	cr_expect(eq(u64, lock_nodes[0].waits, 1));
}

Test(locks_profiler, waits_that_a_jump_leaves_have_failed)
{
	struct shim_lock outer = begin_wait(0x1000, 10);
	struct shim_lock inner = begin_wait(0x2000, 20);

	on_contention(NULL, &outer);
	on_contention(NULL, &inner);
	outer.ended = 50;
	on_acquired(NULL, &outer);
	cr_expect(eq(u64, lock_nodes[1].failures, 1));
	cr_expect(eq(u64, lock_nodes[1].time, 30));
	cr_expect(zero(u64, lock_nodes[0].failures));
	cr_expect(eq(u64, lock_nodes[0].time, 40));
	/* In another recording, nodes of the former one are not written. */
	on_contention(NULL, &outer);
	begin_recording(NULL);
	on_acquired(NULL, &outer);
	cr_expect(eq(u64, lock_nodes[0].time, 40));
}

Test(locks_profiler, a_refused_trylock_is_no_wait)
{
	struct shim_lock lock = { .address = 0x1000, .error = 16 };

	on_failed(NULL, &lock);
	cr_expect(eq(u64, lock_nodes[0].refusals, 1));
	cr_expect(zero(u64, lock_nodes[0].waits));
	lock = begin_wait(0x1000, 5);
	on_contention(NULL, &lock);
	lock.ended = 8;
	on_failed(NULL, &lock);
	cr_expect(eq(u64, lock_nodes[0].refusals, 1));
	cr_expect(eq(u64, lock_nodes[0].failures, 1));
	cr_expect(eq(u64, lock_nodes[0].time, 3));
}
