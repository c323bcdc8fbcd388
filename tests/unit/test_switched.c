/*
 * Switching functions together: throttled_switch in hooks/path/throttled.c.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "../../hooks/path/throttled.c"

uint32_t tree_starts;

void *shim_memory_map(size_t size)
{
	static char memory[8 << 20] __attribute__((aligned(64)));
	static size_t used;
	void *taken = &memory[used];

	used += (size + 63) & ~(size_t)63;
	cr_assert(le(sz, used, sizeof(memory)));
	return taken;
}

#define FUNCTIONS 300
#define SITES	  7 /* of each */

/* What throttled_switch asks for. */
static uint32_t batches, switched, refused_batch;
static uintptr_t switched_off[SITES];

enum shim_result shim_profiler_switch_calls(struct shim_profiler_handle *handle,
					    int on, uint32_t count,
					    const struct shim_hook_call *calls)
{
	cr_assert(eq(ptr, handle, tree_handle));
	cr_assert(gt(u32, count, 0));
	for (uint32_t i = 0; !on && i < count; i++)
		switched_off[switched++] = calls[i].address;
	if (!on)
		return SHIM_OK;
	for (uint32_t i = 0; i < count; i++, switched++) {
		cr_assert(eq(u64, calls[i].address, 0x100 + switched % SITES));
		cr_assert(eq(u64, calls[i].function, 1 + switched / SITES));
	}
	return ++batches == refused_batch ? SHIM_E_FAIL : SHIM_OK;
}

Test(switched, functions_are_switched_in_few_batches)
{
	static struct throttled_site sites[SITES * FUNCTIONS];
	static struct throttled *list[FUNCTIONS];

	cr_assert(throttled_switch(list, 0, true));
	for (uint32_t i = 0; i < SITES * FUNCTIONS; i++)
		sites[i] = (struct throttled_site){
			.next = i % SITES < SITES - 1 ? &sites[i + 1] : NULL,
			.address = 0x100 + i % SITES,
		};
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		list[i] = throttled_add(1 + i, 0);
		list[i]->sites = &sites[SITES * i];
	}
	cr_assert(throttled_switch(list, FUNCTIONS, true));
	cr_assert(eq(u32, switched, SITES * FUNCTIONS));
	cr_assert(eq(u32, batches, SITES * FUNCTIONS / SWITCHED_MAX + 1));
	switched = batches = 0;
	refused_batch = 3;
	cr_assert(not(throttled_switch(list, FUNCTIONS, true)));
	cr_assert(eq(u32, switched, SITES * FUNCTIONS), "the others, too");
}

/* Another object has come to the address of one that went while it was switched. */
Test(switched, what_is_at_the_sites_of_a_gone_function_is_on)
{
	static struct throttled_site site = { .address = 0x100 };
	struct throttled *gone = throttled_add(1, 0);

	gone->sites = &site;
	throttled_give_back(gone);
	cr_assert(zero(u32, switched));
	throttled_image_gone(1, 2, 7);
	cr_assert(eq(u64, gone->function, 7ull << 48 | 1));
	throttled_give_back(gone);
	cr_assert(eq(u32, switched, 1));
}

/* Leaves are off meanwhile.  One that is jumped to has no address, as a mark, which has both. */
Test(switched, what_counts_in_a_burst_is_calls_of_the_enter_hook)
{
	static struct throttled_site sites[] = {
		{ .address = 0x100, .is_enter = true },
		{ .address = 0x200 },
		{ .address = 0 },
		{ .address = 0x300, .is_enter = true },
		{ .address = 0, .is_mark = true },
	};
	struct throttled *one = throttled_add(1, 0);

	for (unsigned i = 0; i < 4; i++)
		sites[i].next = &sites[i + 1];
	one->sites = sites;
	throttled_end_counting(&one, 1);
	cr_assert(eq(u32, switched, 3));
	cr_assert(eq(u64, switched_off[0], 0x100));
	cr_assert(eq(u64, switched_off[1], 0x300));
	cr_assert(eq(u64, switched_off[2], 0));
}
