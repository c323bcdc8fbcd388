/*
 * The table of functions that are switched off: hooks/path/throttled.c.
 */
#include "path/throttled.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define FUNCTIONS  1300 /* in three blocks */
#define GENERATION 7ull

static uint64_t address(uint32_t i)
{
	return 0x10000 + i * 0x40ull;
}

static void add_all(void)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		struct throttled *added = throttled_add(address(i), 0);

		cr_assert(ne(ptr, added, NULL));
		cr_assert(eq(ptr, added, throttled_get(i)));
		cr_assert(eq(uint, throttled_state(added), THROTTLED_OFF));
	}
	cr_assert(eq(u32, throttled_count, FUNCTIONS));
}

Test(throttled, each_function_is_found_by_its_address)
{
	cr_assert(eq(ptr, throttled_find(address(0)), NULL));
	add_all();
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		cr_assert(
			eq(ptr, throttled_find(address(i)), throttled_get(i)));
		cr_assert(eq(ptr, throttled_find(address(i) + 1), NULL));
	}
	cr_assert(eq(ptr, throttled_find(address(FUNCTIONS)), NULL));
}

/* Another object may come to these addresses. */
static void check_gone(uint32_t first, uint32_t end)
{
	static struct shim_throttled_node nodes[FUNCTIONS];
	static struct throttled_site sites[FUNCTIONS];

	add_all();
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		nodes[i].address = address(i);
		throttled_get(i)->node = &nodes[i];
		throttled_get(i)->is_counted = true;
		sites[i].address = address(i) + 5;
		throttled_get(i)->sites = &sites[i];
	}
	throttled_image_gone(address(first), address(end), GENERATION);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		bool is_gone = i >= first && i < end;
		const struct throttled *one = throttled_get(i);
		uint64_t wanted = address(i) | (is_gone ? GENERATION << 48 : 0);

		cr_assert(eq(int, throttled_state(one) == THROTTLED_GONE,
			     is_gone),
			  "state of %u", i);
		cr_assert(eq(u64, one->function, wanted), "function %u", i);
		cr_assert(eq(u64, nodes[i].address, wanted), "node %u", i);
		cr_assert(eq(int, one->is_counted, !is_gone), "count of %u", i);
		cr_assert(eq(int, sites[i].gone, is_gone), "site of %u", i);
		cr_assert(eq(ptr, throttled_find(address(i)),
			     is_gone ? NULL : (void *)one));
	}
}

Test(throttled, functions_of_an_object_go_with_it)
{
	check_gone(0, 1);
}

Test(throttled, functions_beside_an_object_stay)
{
	check_gone(510, 515);
}

Test(throttled, all_functions_may_go)
{
	check_gone(0, FUNCTIONS);
}

/* The callers ask for a few at a time. */
Test(throttled, calls_are_listed_in_parts)
{
	struct throttled_site sites[9] = { { 0 } };
	struct throttled *one = throttled_add(address(0), 0);

	for (uint32_t i = 0; i < 9; i++)
		sites[i] = (struct throttled_site){
			.next = i < 8 ? &sites[i + 1] : NULL,
			.address = 0x100 + i,
			.gone = i == 0 || i == 4,
			.is_enter = i % 2,
		};
	one->sites = sites;
	for (uint32_t room = 1; room < 9; room++) {
		uint32_t seen = 0, got;
		struct shim_hook_call calls[9];

		while ((got = throttled_list(one, seen, room, calls)) > 0) {
			static const uint32_t there[] = { 1, 2, 3, 5, 6, 7, 8 };

			for (uint32_t i = 0; i < got; i++) {
				cr_assert(
					eq(u64, calls[i].function, address(0)));
				cr_assert(eq(u64, calls[i].address,
					     0x100 + there[seen + i]));
			}
			seen += got;
			cr_assert(le(u32, got, room));
		}
		cr_assert(eq(u32, seen, 7));
	}
	for (uint32_t room = 1; room < 9; room++) {
		uint32_t seen = 0, got;
		struct shim_counted_call calls[9];

		while ((got = throttled_list_enters(one, seen, room, calls)) >
		       0) {
			for (uint32_t i = 0; i < got; i++)
				cr_assert(eq(u64, calls[i].address,
					     0x101 + 2 * (seen + i)));
			seen += got;
		}
		cr_assert(eq(u32, seen, 4));
	}
}

/* --- leaves of functions that are on again --- */

#define LOW    0x10000u
#define HIGH   0x20000u
#define FRAME  0x1f000u /* of the recorded call */
#define WITHIN 0x1e000u
#define OTHER  0x30000u /* is no stack */

/* A coroutine's: the thread's own one is the last. */
static struct stack own, stack = { .low = LOW, .high = HIGH, .next = &own };
static struct tree tree = { .stack = &stack };
static struct shim_node root, outer, inner;

static void open_in(struct shim_node *node, struct shim_node *parent,
		    uint64_t function, uintptr_t sp)
{
	node->parent = (uintptr_t)parent;
	node->function = function | SHIM_NODE_EXACT;
	node->frame = sp - LOW;
	tree_hot.current = tree.current = node;
}

/* Function 0 is on and open; function 1 has called function 2. */
static void open_calls(void)
{
	for (uint32_t i = 0; i < 3; i++)
		throttled_add(address(i), 0)->state = THROTTLED_ON;
	tree_hot.tree = &tree;
	open_in(&outer, &root, address(0), FRAME);
}

static bool is_ignored(uint32_t function, uintptr_t sp)
{
	return throttled_ignores_leave(address(function), NULL, sp);
}

Test(throttled, the_leave_of_the_recorded_call_ends_it, .init = open_calls)
{
	cr_expect(not(is_ignored(0, FRAME)));
	cr_expect(is_ignored(1, FRAME));
	/* It was never off. */
	cr_expect(not(is_ignored(3, FRAME)));
	/* Calls within it, whose own leaves were not seen. */
	open_in(&inner, &outer, address(1), WITHIN);
	cr_expect(not(is_ignored(1, WITHIN)));
	cr_expect(not(is_ignored(0, FRAME)));
}

Test(throttled, leaves_of_recursive_calls_that_were_not_recorded_are_ignored,
     .init = open_calls)
{
	cr_expect(is_ignored(0, FRAME - 16));
	cr_expect(is_ignored(0, WITHIN));
	open_in(&inner, &outer, address(1), WITHIN);
	cr_expect(is_ignored(0, WITHIN - 16));
	cr_expect(is_ignored(1, WITHIN - 16));
}

/* Frames of different stacks cannot be compared. */
Test(throttled, on_another_stack_each_open_call_may_end, .init = open_calls)
{
	cr_expect(not(is_ignored(0, OTHER)));
	cr_expect(is_ignored(1, OTHER));
	open_in(&inner, &outer, address(1), WITHIN);
	cr_expect(not(is_ignored(0, OTHER)));
	stack.base = &outer;
	cr_expect(is_ignored(1, WITHIN - 16));
	cr_expect(not(is_ignored(0, WITHIN)));
}

Test(throttled, the_tree_knows_the_calls_while_the_fast_path_is_off,
     .init = open_calls)
{
	tree_hot.current = &tree_no_call;
	cr_expect(not(is_ignored(0, FRAME)));
	cr_expect(is_ignored(0, WITHIN));
	tree_hot.tree = NULL;
	cr_expect(is_ignored(0, FRAME));
}
