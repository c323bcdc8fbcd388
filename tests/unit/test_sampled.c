/*
 * Sampled blocks of memory: which releases are looked up.
 */
#include "heap/allocations.h"
#include "heap/allocations_sampled.h"
#include "heap/heap_table.h"
#include "runtime/events.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

#define BLOCKS 4000
#define PERIOD 2048

static unsigned allocations, releases;
static uint64_t blocks, bytes;

static void on_allocation(struct shim_profiler *profiler,
			  const struct shim_block *block)
{
	(void)profiler;
	allocations++;
	blocks += block->weight;
	bytes += block->weight_bytes;
}

static void on_release(struct shim_profiler *profiler,
		       const struct shim_block *block)
{
	(void)profiler;
	releases++;
	blocks -= block->weight;
	bytes -= block->weight_bytes;
}

static void on_change(struct shim_profiler *profiler,
		      const struct shim_block *before,
		      const struct shim_block *after)
{
	on_release(profiler, before);
	on_allocation(profiler, after);
}

static void begin(void)
{
	struct shim_profiler_handle *handle;

	setenv("SHIM_DISABLE", "1", 1);
	state_start();
	thread_get();
	handle = shim_profiler_create(NULL);
	shim_profiler_on_allocation(handle, on_allocation);
	shim_profiler_on_deallocation(handle, on_release);
	shim_profiler_on_reallocation(handle, on_change);
	cr_assert(
		eq(int,
		   shim_profiler_enable_sampled_allocations(handle, PERIOD, 7),
		   SHIM_OK));
	cr_assert(allocations_decide(true));
	cr_assert(allocations_raise_events());
}

static void *address(uintptr_t i)
{
	return (void *)(0x100000 + i * 64);
}

static unsigned count_looked_up(void)
{
	unsigned count = 0;

	for (uintptr_t i = 0; i < BLOCKS; i++)
		count += sampled_may_have((uintptr_t)address(i));
	return count;
}

Test(sampled, releases_are_looked_up_while_there_may_be_a_sampled_block)
{
	begin();
	for (uintptr_t i = 0; i < BLOCKS; i++)
		allocations_got(address(i), 64, 0, SHIM_ALLOCATION_MALLOC);
	cr_expect(gt(u32, allocations, BLOCKS * 64 / PERIOD / 2));
	cr_expect(lt(u32, allocations, BLOCKS * 64 / PERIOD * 2));
	cr_expect(ge(u32, count_looked_up(), allocations));
	cr_expect(lt(u32, count_looked_up(), BLOCKS / 4));
	for (uintptr_t i = 0; i < BLOCKS; i++)
		allocations_gives(address(i));
	cr_expect(eq(u32, releases, allocations));
	cr_expect(zero(u64, blocks));
	cr_expect(zero(u64, bytes));
	cr_expect(zero(u32, count_looked_up()));
}

Test(sampled, blocks_that_change_are_sampled_again)
{
	struct allocations_change change;

	begin();
	for (uintptr_t i = 0; i < BLOCKS; i++)
		allocations_got(address(i), 64, 0, SHIM_ALLOCATION_MALLOC);
	for (uintptr_t i = 0; i < BLOCKS; i++) {
		allocations_change_begins(&change, address(i));
		allocations_changed(&change, address(BLOCKS + i), 128);
	}
	cr_expect(gt(u32, releases, 0));
	for (uintptr_t i = 0; i < BLOCKS; i++)
		allocations_gives(address(BLOCKS + i));
	cr_expect(eq(u32, releases, allocations));
	cr_expect(zero(u64, blocks));
	cr_expect(zero(u64, bytes));
	cr_expect(zero(u32, count_looked_up()));
}
