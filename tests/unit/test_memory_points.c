/*
 * Live bytes over time, in a fork child: hooks/memory/memory_points.c.
 */
#include "memory/memory.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* The points that are due belong to the parent, and the child may get no room for its
 * own. */
Test(memory_points, a_child_without_points_of_its_own_adds_none)
{
	memory_point_due = 5;
	memory_points_forked();
	memory_point_add(1000, 4096);
	cr_expect(eq(u64, memory_point_due, UINT64_MAX));
}
