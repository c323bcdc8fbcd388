/*
 * Tables of exception handlers, valid and damaged ones.  Unreadable memory
 * follows each table.
 */
#include "unwind/lsda.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE  4096
#define START 0x1000

/* Landing pads 0x40 (catch clauses 1 and 2), 0x50 (destructors) and again 0x40. */
static const uint8_t table[] = {
	0xff,			/* pads are relative to the function */
	0xff,			/* no types */
	0x01,			/* numbers are ULEB128 */
	12,			/* size of the call site table */
	0x00, 0x10, 0x40, 0x01, /* start, length, landing pad, action */
	0x10, 0x10, 0x50, 0x00, /* no action */
	0x20, 0x10, 0x40, 0x01, /* the same action as the first */
	0x01, 0x01,		/* filter 1, then the next record */
	0x02, 0x00,		/* filter 2, end of the chain */
};

static struct lsda put_at_the_end(const uint8_t *bytes, size_t size)
{
	static uint8_t *page;

	if (!page) {
		page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mprotect(page + PAGE, PAGE, PROT_NONE);
	}
	memcpy(page + PAGE - size, bytes, size);
	return (struct lsda){ page + PAGE - size, page + PAGE, START };
}

Test(lsda, handlers_have_numbers_in_the_order_of_the_table)
{
	struct lsda lsda = put_at_the_end(table, sizeof(table));

	cr_expect(eq(int, lsda_count(&lsda), 3));
	cr_expect(eq(int, lsda_number(&lsda, START + 0x40, 1), 0));
	cr_expect(eq(int, lsda_number(&lsda, START + 0x40, 2), 1));
	cr_expect(eq(int, lsda_number(&lsda, START + 0x50, 0), 2));
	cr_expect(eq(int, lsda_number(&lsda, START + 0x60, 0), -1));
}

Test(lsda, a_function_without_a_table_has_no_handlers)
{
	struct lsda none = { NULL, NULL, START };

	cr_expect(eq(int, lsda_count(&none), 0));
	cr_expect(eq(int, lsda_number(&none, START + 0x40, 1), -1));
}

Test(lsda, an_action_outside_the_table_has_no_handlers)
{
	uint8_t bytes[sizeof(table)];
	struct lsda lsda;

	memcpy(bytes, table, sizeof(table));
	bytes[7] = 0x7f; /* the first action */
	lsda = put_at_the_end(bytes, sizeof(bytes));
	cr_expect(eq(int, lsda_count(&lsda), 3));
	cr_expect(eq(int, lsda_number(&lsda, START + 0x50, 0), 0));
}

Test(lsda, a_table_that_is_cut_off_is_read_as_far_as_it_goes)
{
	for (size_t size = 0; size < sizeof(table); size++) {
		struct lsda lsda = put_at_the_end(table, size);
		int count = lsda_count(&lsda);

		cr_expect(ge(int, count, 0));
		cr_expect(le(int, count, 3));
		lsda_number(&lsda, START + 0x50, 7);
	}
}

/* Sets each byte to each value: distances lead anywhere, and chains may form
 * circles. */
Test(lsda, a_damaged_table_ends_nothing, .timeout = 60)
{
	for (size_t i = 0; i < sizeof(table); i++)
		for (unsigned value = 0; value < 256; value++) {
			uint8_t bytes[sizeof(table)];
			struct lsda lsda;

			memcpy(bytes, table, sizeof(bytes));
			bytes[i] = (uint8_t)value;
			lsda = put_at_the_end(bytes, sizeof(bytes));
			cr_expect(le(int, lsda_count(&lsda), 100));
			lsda_number(&lsda, START + 0x40, 77);
		}
}
