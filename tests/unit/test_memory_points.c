/*
 * Live bytes over time: hooks/memory/memory_points.c.
 */
#include "memory/memory.h"
#include "path/threads.h"
#include "recording.h"
#include "runtime/state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

/* The points that are due belong to the parent, and the child may get no room for its
 * own. */
Test(memory_points, a_child_without_points_of_its_own_adds_none)
{
	memory_point_due = 5;
	memory_points_forked();
	memory_point_add(1000, 4096);
	cr_expect(eq(u64, memory_point_due, UINT64_MAX));
}

/* The word of the coarse clock may have a unit of its own: here a tick is 7 of it, and 7,000
 * of the exact clock. */
Test(memory_points, the_next_is_due_in_units_of_the_tick)
{
	char directory[] = "/tmp/shim-unit.XXXXXX";
	const volatile uint64_t *word;
	uint64_t length, first;
	struct tree *tree;

	cr_assert(mkdtemp(directory) != NULL);
	setenv("SHIM_DIR", directory, 1);
	setenv("SHIM_PROFILE", "calltree:counts", 1);
	state_start();
	tree = tree_get((uintptr_t)__builtin_frame_address(0));
	word = shim_clock_coarse(&length);
	first = word ? *word : 1000000;
	cr_assert(tree != NULL);
	memory_points_start(tree, 7, 7000);
	cr_expect(eq(u64, memory_point_due, 0));
	memory_point_add(first, 4096);
	cr_expect(eq(u64, memory_point_due, first + 7));
	/* Too early: nothing is added, and the same point stays due. */
	memory_point_add(first + 6, 8192);
	cr_expect(eq(u64, memory_point_due, first + 7));
	recording_remove(directory);
}
