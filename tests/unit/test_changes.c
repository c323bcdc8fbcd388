/* Change points of synthetic series. */
#include <stdbool.h>
#include <stdint.h>
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "base/changes.h"

#define COUNT 60
#define LEVEL 0.01

static uint32_t random_state;

/* About normal, with mean 0 and deviation 1. */
static double noise(void)
{
	double sum = -6;
	int i;

	for (i = 0; i < 12; i++) {
		random_state = random_state * 1664525u + 1013904223u;
		sum += random_state / 4294967296.0;
	}
	return sum;
}

/* A run of 100, with @shift from @from on; each version has @runs runs. */
static uint32_t find(uint32_t seed, uint32_t from, double shift, uint32_t runs,
		     struct change_point *points)
{
	double values[COUNT];
	bool begins[COUNT];
	uint32_t i;

	random_state = seed;
	for (i = 0; i < COUNT; i++) {
		values[i] = 100 + noise() + (i >= from ? shift : 0);
		begins[i] = i % runs == 0;
	}
	return changes_find(values, begins, COUNT, LEVEL, points, 8);
}

Test(changes, a_step_is_found_where_it_is)
{
	struct change_point points[8];
	uint32_t seed;

	for (seed = 1; seed <= 20; seed++) {
		cr_assert(ge(u32, find(seed, 40, 5, 5, points), 1));
		cr_assert(eq(u32, points[0].at, 40));
		cr_assert(lt(dbl, points[0].before, 101));
		cr_assert(gt(dbl, points[0].after, 104));
		cr_assert(le(dbl, points[0].chance, LEVEL));
	}
}

Test(changes, two_steps_are_found_in_their_order)
{
	struct change_point points[8];
	double values[COUNT];
	bool begins[COUNT];
	uint32_t i;

	random_state = 7;
	for (i = 0; i < COUNT; i++) {
		values[i] = 100 + noise() + (i >= 20) * 10 - (i >= 45) * 6;
		begins[i] = i % 5 == 0;
	}
	cr_assert(eq(u32, changes_find(values, begins, COUNT, LEVEL, points, 8),
		     2));
	cr_assert(eq(u32, points[0].at, 20));
	cr_assert(eq(u32, points[1].at, 45));
	cr_assert(lt(dbl, points[1].after, points[1].before));
}

/* 1 % of 400 series: 4; 14 or more have a probability of 1e-4. */
Test(changes, a_series_without_a_change_has_one_as_often_as_the_level_says)
{
	struct change_point points[8];
	uint32_t seed, found = 0;

	for (seed = 1; seed <= 400; seed++)
		found += find(seed, COUNT, 0, 5, points) > 0;
	cr_assert(lt(u32, found, 14));
}

Test(changes, a_change_begins_with_a_version)
{
	struct change_point points[8];
	uint32_t i, count = find(3, 33, 20, 5, points);

	cr_assert(ge(u32, count, 1));
	for (i = 0; i < count; i++)
		cr_assert(eq(u32, points[i].at % 5, 0));
}

Test(changes, few_runs_show_nothing)
{
	static const double values[] = { 1, 1, 1, 2, 2, 2 };
	static const bool begins[6] = { true, false, false, true };
	struct change_point points[8];

	cr_assert(
		eq(u32, changes_find(values, begins, 6, LEVEL, points, 8), 0));
	cr_assert(
		eq(u32, changes_find(values, begins, 1, LEVEL, points, 8), 0));
	cr_assert(
		eq(u32, changes_find(values, begins, 0, LEVEL, points, 8), 0));
}

Test(changes, equal_values_have_no_change)
{
	double values[COUNT];
	bool begins[COUNT];
	struct change_point points[8];
	uint32_t i;

	for (i = 0; i < COUNT; i++) {
		values[i] = 0.1;
		begins[i] = true;
	}
	cr_assert(eq(u32, changes_find(values, begins, COUNT, LEVEL, points, 8),
		     0));
}
