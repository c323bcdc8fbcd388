/*
 * The places of code that may differ (shim/dispatch/changes.h).
 */
#include "dispatch/changes.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct changes changes;

/* How many places of @count are to be looked at, and whether @number is among them. */
static uint32_t looked_at(uint32_t count, uint32_t number)
{
	uint32_t looks = 0;
	bool is_met = false;

	for (uint32_t i =
		     changes_next(&changes, changes.first, changes.end, count);
	     i < changes.end;
	     i = changes_next(&changes, i + 1, changes.end, count)) {
		is_met |= i == number;
		looks++;
	}
	cr_assert(is_met, "%u of %u", number, count);
	return looks;
}

Test(code_changes, what_was_added_is_met_and_little_else)
{
	static const uint32_t counts[] = { 1, 64, 1023, 1024, 1025, 100000 };

	for (unsigned i = 0; i < 6; i++) {
		uint32_t count = counts[i], last = count - 1;
		uint32_t block = count / CHANGES_BLOCKS + 1;

		changes_clear(&changes);
		changes_add(&changes, last, count);
		cr_assert(eq(u32, looked_at(count, last), 1));
		changes_add(&changes, 0, count);
		cr_assert(le(u32, looked_at(count, 0), 2 * block));
		cr_assert(le(u32, looked_at(count, last), 2 * block));
		changes_add(&changes, count / 2, count);
		cr_assert(le(u32, looked_at(count, count / 2), 3 * block));
	}
}

Test(code_changes, all_are_met_or_none)
{
	changes_add_all(&changes, 5000);
	cr_assert(eq(u32, looked_at(5000, 4999), 5000));
	changes_clear(&changes);
	cr_assert(eq(u32,
		     changes_next(&changes, changes.first, changes.end, 5000),
		     changes.end));
}
