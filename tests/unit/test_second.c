/*
 * Turns in libshim-unwind.so, in whose place the test is.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "runtime/contract.h"

#undef ENTRY_ASYNC
#define ENTRY_ASYNC() (void)0

#include "unwind/second.c"

/* --- the library --- */

static bool starts = true, steps = true, ends;
static unsigned forgotten, entered;
static const struct second_calls *given;
static void (*on_step)(void);

static bool start(const struct second_calls *of_shim)
{
	given = of_shim;
	errno = ENOMEM;
	return starts;
}

static bool step(struct unwind *walk)
{
	entered++;
	walk->registers[WALK_IP] += 0x100;
	walk->is_last = ends;
	if (on_step)
		on_step();
	return steps;
}

static void forget(void)
{
	forgotten++;
}

static struct second_unwinder library = { SECOND_VERSION, start, step, forget };

/* --- what second.c needs of others --- */

static bool has_library = true, has_symbol = true, has_tables = true;
static int depth_of_ours, pins;
static unsigned opened, lines;
static int self = 42;
static unsigned yields;
static void (*on_yield)(void);

void *lookup_open_beside_us(const char *name)
{
	opened++;
	cr_assert(eq(int, depth_of_ours, 1));
	cr_assert(eq(str, (char *)(uintptr_t)name, "libshim-unwind.so"));
	return has_library ? &library : NULL;
}

void *lookup_in(const struct link_map *object, const char *name)
{
	cr_assert(eq(ptr, (void *)(uintptr_t)object, &library));
	cr_assert(eq(str, (char *)(uintptr_t)name, SECOND_SYMBOL));
	return has_symbol ? &library : NULL;
}

void log_line(const char *format, ...)
{
	(void)format;
	lines++;
}

bool thread_ours_begins(void)
{
	return depth_of_ours++ > 0;
}

void thread_ours_ends(bool before)
{
	cr_assert(not(before));
	depth_of_ours--;
}

int sys_gettid(void)
{
	return self;
}

void sys_yield(void)
{
	yields++;
	if (on_yield)
		on_yield();
}

static struct image_entry image = { .start = 0x400000,
				    .end = 0x500000,
				    .frames = 0x480000 };

void image_pin(void)
{
	pins++;
}

void image_unpin(void)
{
	pins--;
}

struct image_entry *image_find(uintptr_t address)
{
	cr_assert(eq(int, pins, 1));
	return address - image.start < image.end - image.start ? &image : NULL;
}

bool unwind_read(const struct unwind *walk, uintptr_t at, uintptr_t *value)
{
	(void)walk;
	*value = 1;
	return at != 0;
}

bool eh_frame_read(uintptr_t address, void *to, size_t size)
{
	cr_assert(eq(ulong, size, sizeof(uintptr_t)));
	if (address < image.start || address >= image.end)
		return false;
	*(uintptr_t *)to = 2;
	return true;
}

bool unwind_is_signal_frame(const struct unwind *walk)
{
	return walk->registers[WALK_IP] == 0;
}

uintptr_t unwind_function(const struct unwind *walk)
{
	(void)walk;
	return has_tables ? 0x401000 : 0;
}

static void open_it(void)
{
	cr_assert(eq(int, shim_stack_set_unwinder(SHIM_UNWINDER_BOTH),
		     SHIM_S_FALSE));
	second_start();
	cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_BOTH));
}

static bool step_once(void)
{
	struct unwind walk = { .registers[WALK_IP] = 0x401010 };

	return second_step(&walk);
}

/* --- opening --- */

Test(second, the_library_is_opened_once_and_if_it_is_wanted)
{
	second_start();
	cr_assert(eq(uint, opened, 0));
	cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_OWN));
	cr_assert(eq(int, shim_stack_set_unwinder(SHIM_UNWINDER_OWN), SHIM_OK));
	cr_assert(eq(int, shim_stack_set_unwinder(SHIM_UNWINDER_LIBUNWIND),
		     SHIM_S_FALSE));
	cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_OWN));
	errno = EAGAIN;
	second_start();
	cr_assert(eq(int, errno, EAGAIN));
	second_start();
	cr_assert(eq(uint, opened, 1));
	cr_assert(eq(uint, lines, 0));
	cr_assert(eq(int, depth_of_ours, 0));
	cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_LIBUNWIND));
	cr_assert(
		eq(int, shim_stack_set_unwinder(SHIM_UNWINDER_BOTH), SHIM_OK));
	cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_BOTH));
	cr_assert(eq(int, shim_stack_set_unwinder(SHIM_UNWINDER_BOTH + 1),
		     SHIM_E_INVALIDARG));
	cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_BOTH));
}

static void expect_unusable(void)
{
	cr_assert(eq(int, shim_stack_set_unwinder(SHIM_UNWINDER_BOTH),
		     SHIM_S_FALSE));
	errno = EAGAIN;
	second_start();
	second_start();
	cr_assert(eq(int, errno, EAGAIN));
	cr_assert(eq(uint, opened, 1));
	cr_assert(eq(uint, lines, 1));
	cr_assert(eq(int, depth_of_ours, 0));
	cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_OWN));
	cr_assert(not(step_once()));
	cr_assert(eq(uint, entered, 0));
}

Test(second, a_missing_library_is_logged)
{
	has_library = false;
	expect_unusable();
}

Test(second, a_library_without_the_symbol_is_logged)
{
	has_symbol = false;
	expect_unusable();
}

Test(second, a_library_of_another_version_is_logged)
{
	library.version++;
	expect_unusable();
}

Test(second, a_library_that_does_not_start_is_logged)
{
	starts = false;
	expect_unusable();
}

/* --- what the library calls --- */

Test(second, the_stack_is_read_first_then_tables_then_other_memory)
{
	struct unwind walk = { .stack_low = 0x7000, .stack_high = 0x8000 };
	uintptr_t value;

	open_it();
	cr_assert(given->read(&walk, 0x7000, &value));
	cr_assert(eq(ulong, value, 1));
	cr_assert(given->read(&walk, 0x400000, &value));
	cr_assert(eq(ulong, value, 2));
	cr_assert(given->read(&walk, 0x9000, &value));
	cr_assert(eq(ulong, value, 1));
	cr_assert(not(given->read(&walk, 0, &value)));
	/* Tables at the stack's end are not the stack's. */
	image.start = 0x6000;
	cr_assert(given->read(&walk, 0x6fff, &value));
	cr_assert(eq(ulong, value, 2));
	cr_assert(given->read(&walk, 0x7000, &value));
	cr_assert(eq(ulong, value, 1));
	cr_assert(given->read(&walk, 0x7fff, &value));
	cr_assert(eq(ulong, value, 1));
	cr_assert(given->read(&walk, 0x8000, &value));
	cr_assert(eq(ulong, value, 2));
}

Test(second, tables_are_those_of_the_image)
{
	struct second_tables tables = { 0 };

	open_it();
	cr_assert(given->find_tables(0x400000, &tables));
	cr_assert(eq(ulong, tables.start, 0x400000));
	cr_assert(eq(ulong, tables.end, 0x500000));
	cr_assert(eq(ulong, tables.index, 0x480000));
	cr_assert(not(given->find_tables(0x500000, &tables)));
	image.frames = 0;
	cr_assert(not(given->find_tables(0x400000, &tables)));
	cr_assert(eq(int, pins, 0));
	cr_assert(given->is_signal_frame == unwind_is_signal_frame);
}

/* --- turns --- */

Test(second, a_step_changes_the_walk_only_if_it_is_done)
{
	struct unwind walk = { .registers[WALK_IP] = 0x401010 };

	open_it();
	cr_assert(second_step(&walk));
	cr_assert(eq(ulong, walk.registers[WALK_IP], 0x401110));
	cr_assert(eq(ulong, walk.function, 0x401000));
	cr_assert(not(walk.is_last));
	steps = false;
	cr_assert(not(second_step(&walk)));
	cr_assert(eq(ulong, walk.registers[WALK_IP], 0x401110));
	cr_assert(not(walk.is_last));
	ends = true;
	cr_assert(not(second_step(&walk)));
	cr_assert(eq(ulong, walk.registers[WALK_IP], 0x401110));
	cr_assert(walk.is_last);
	cr_assert(eq(uint, entered, 3));
	cr_assert(eq(uint, yields, 0));
}

Test(second, code_without_tables_is_not_for_the_library)
{
	struct unwind walk = { .function = 7 };

	open_it();
	has_tables = false;
	cr_assert(not(second_step(&walk)));
	cr_assert(eq(uint, entered, 0));
	cr_assert(eq(ulong, walk.function, 0));
}

Test(second, tables_are_forgotten_once_after_an_object_was_closed)
{
	open_it();
	cr_assert(step_once());
	cr_assert(eq(uint, forgotten, 0));
	second_closed();
	second_closed();
	cr_assert(step_once());
	cr_assert(step_once());
	cr_assert(eq(uint, forgotten, 1));
	second_closed();
	cr_assert(step_once());
	cr_assert(eq(uint, forgotten, 2));
}

static bool inner_was_done;

static void sample(void)
{
	on_step = NULL;
	inner_was_done = step_once();
}

Test(second, a_sample_inside_the_library_does_not_enter_it)
{
	open_it();
	for (unsigned i = 0; i < 20; i++) {
		inner_was_done = true;
		on_step = sample;
		cr_assert(step_once());
		cr_assert(not(inner_was_done));
	}
	cr_assert(eq(uint, yields, 0));
	cr_assert(eq(uint, entered, 20));
}

static void enter_as_another(void)
{
	on_step = NULL;
	self = 43;
	inner_was_done = step_once();
	self = 42;
}

static void expect_to_wait_in_vain(void)
{
	yields = 0;
	on_step = enter_as_another;
	cr_assert(step_once());
	cr_assert(not(inner_was_done));
	cr_assert(eq(uint, yields, YIELDS_MAX));
}

Test(second, others_wait_and_after_eight_waits_in_vain_it_is_lost)
{
	open_it();
	/* Its user has left the library by a jump. */
	user = 44;
	for (unsigned i = 1; i <= VAIN_MAX; i++) {
		cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_BOTH));
		cr_assert(not(step_once()));
		cr_assert(eq(uint, yields, i * YIELDS_MAX));
	}
	cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_OWN));
	cr_assert(not(step_once()));
	cr_assert(eq(uint, yields, VAIN_MAX * YIELDS_MAX));
	cr_assert(eq(uint, entered, 0));
}

Test(second, waits_in_vain_do_not_add_up_over_a_long_time)
{
	open_it();
	for (unsigned i = 0; i < 3 * VAIN_MAX; i++)
		expect_to_wait_in_vain();
	cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_BOTH));
	cr_assert(step_once());
}

static void leave_at_last(void)
{
	if (yields == YIELDS_MAX - 1)
		user = 0;
}

Test(second, the_turn_of_another_thread_may_end_in_time)
{
	open_it();
	user = 44;
	on_yield = leave_at_last;
	cr_assert(step_once());
	cr_assert(eq(uint, entered, 1));
	cr_assert(eq(uint, yields, YIELDS_MAX - 1));
}

Test(second, a_child_does_not_wait_for_threads_that_it_lacks)
{
	open_it();
	second_forked();
	cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_BOTH));
	user = self;
	second_forked();
	cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_BOTH));
	user = self + 1;
	second_forked();
	cr_assert(eq(uint, second_wanted(), SHIM_UNWINDER_OWN));
}
