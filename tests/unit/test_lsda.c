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

/* --- numbers --- */

static uint8_t made[1024];
static size_t made_size;

static void add_uleb(uint64_t value)
{
	do {
		made[made_size++] = (uint8_t)((value & 0x7f) |
					      (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
}

static void add_sleb(int64_t value)
{
	bool is_last;

	do {
		uint8_t byte = value & 0x7f;

		value >>= 7;
		is_last = value == (byte & 0x40 ? -1 : 0);
		made[made_size++] = (uint8_t)(byte | (is_last ? 0 : 0x80));
	} while (!is_last);
}

static void add_fixed(uint64_t value, size_t size)
{
	memcpy(made + made_size, &value, size);
	made_size += size;
}

/* A table with one landing pad 0x40, whose first clause is behind @skipped bytes. */
static void begin_actions(size_t skipped)
{
	static const uint8_t header[] = { 0xff, 0xff, 0x01 };

	made_size = sizeof(header);
	memcpy(made, header, sizeof(header));
	add_uleb(skipped < 127 ? 4 : 5);
	add_fixed(0x401000, 3);
	add_uleb(skipped + 1);
	memset(made + made_size, 0, skipped);
	made_size += skipped;
}

static int find_in_made(uintptr_t pad, int64_t filter)
{
	struct lsda lsda = put_at_the_end(made, made_size);

	return lsda_number(&lsda, pad, filter);
}

static const int64_t filters[] = {
	1,	   -1,
	63,	   64,
	-64,	   -65,
	8191,	   8192,
	-8192,	   -8193,
	1 << 20,   -(1 << 20),
	1ll << 34, -(1ll << 34) - 1,
	1ll << 55, INT64_MAX,
	INT64_MIN,
};

Test(lsda, filters_have_any_number_of_bytes)
{
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		begin_actions(0);
		add_sleb(77);
		add_sleb(1);
		add_sleb(filters[i]);
		add_sleb(0);
		/* The pad's first clause is 0; so is one that is not found. */
		cr_expect(eq(int, find_in_made(START + 0x40, filters[i]), 1),
			  "%zu", i);
		cr_expect(eq(int, find_in_made(START + 0x40, 77), 0), "%zu", i);
		cr_expect(eq(int, find_in_made(START + 0x40, 78), 0), "%zu", i);
	}
}

Test(lsda, the_next_clause_is_anywhere)
{
	static const int distances[] = { 1, 2, 62, 63, 64, 200 };

	for (size_t i = 0; i < sizeof(distances) / sizeof(distances[0]); i++) {
		size_t from;

		begin_actions(0);
		add_sleb(1);
		from = made_size;
		add_sleb(distances[i] + 1);
		memset(made + made_size, 0,
		       from + (size_t)distances[i] + 1 - made_size);
		made_size = from + (size_t)distances[i] + 1;
		add_sleb(2);
		add_sleb(0);
		cr_expect(eq(int, find_in_made(START + 0x40, 2), 1), "%zu", i);
	}
	/* Before the first. */
	begin_actions(2);
	made[made_size - 2] = 2;
	add_sleb(1);
	add_sleb(-3);
	cr_expect(eq(int, find_in_made(START + 0x40, 1), 0));
	cr_expect(eq(int, find_in_made(START + 0x40, 2), 1));
}

Test(lsda, the_first_clause_is_anywhere)
{
	static const size_t skipped[] = { 0, 1, 125, 126, 127, 128, 300 };

	for (size_t i = 0; i < sizeof(skipped) / sizeof(skipped[0]); i++) {
		begin_actions(skipped[i]);
		add_sleb(1);
		add_sleb(1);
		add_sleb(2);
		add_sleb(0);
		cr_expect(eq(int, find_in_made(START + 0x40, 2), 1), "%zu", i);
	}
}

static void add_value(uint8_t encoding, uint64_t value)
{
	static const size_t sizes[] = { 8, 0, 2, 4, 8 };

	if (encoding == 1)
		add_uleb(value);
	else
		add_fixed(value, sizes[encoding]);
}

/* A table with a landing pad at @pad, with the types' offset if it is not 0. */
static void make_encoded(uint8_t base_encoding, uint64_t base, uint64_t types,
			 uint8_t encoding, uint64_t pad)
{
	size_t at;

	made_size = 0;
	made[made_size++] = base_encoding;
	if (base_encoding != 0xff)
		add_value(base_encoding, base);
	made[made_size++] = types ? 0x9b : 0xff;
	if (types)
		add_uleb(types);
	made[made_size++] = encoding;
	at = made_size++;
	/* A call without a landing pad is no handler. */
	add_value(encoding, 0);
	add_value(encoding, 1);
	add_value(encoding, 0);
	add_uleb(0);
	add_value(encoding, 1);
	add_value(encoding, 0x7f);
	add_value(encoding, pad);
	add_uleb(0);
	made[at] = (uint8_t)(made_size - at - 1);
}

static const struct {
	uint8_t encoding;
	uint64_t value;
} encoded[] = {
	{ 0, 0x123456789abc }, { 1, 0x7f },
	{ 1, 0x80 },	       { 1, 0x12345678 },
	{ 1, 1ull << 62 },     { 2, 0xfedc },
	{ 3, 0xfedcba98 },     { 4, 0x1234567890abcdef },
};

Test(lsda, landing_pads_have_each_encoding)
{
	for (size_t i = 0; i < sizeof(encoded) / sizeof(encoded[0]); i++) {
		make_encoded(0xff, 0, i % 2 ? 1000 : 0, encoded[i].encoding,
			     encoded[i].value);
		cr_expect(eq(int, find_in_made(START + encoded[i].value, 0), 0),
			  "%zu", i);
		cr_expect(eq(int, find_in_made(START + encoded[i].value + 1, 0),
			     -1),
			  "%zu", i);
	}
	made[2] = 5;
	cr_expect(eq(int, find_in_made(START, 0), -1));
}

Test(lsda, landing_pads_may_be_relative_to_another_address)
{
	for (size_t i = 0; i < sizeof(encoded) / sizeof(encoded[0]); i++) {
		make_encoded(encoded[i].encoding, encoded[i].value, i % 2, 1,
			     0x40);
		cr_expect(eq(int, find_in_made(encoded[i].value + 0x40, 0), 0),
			  "%zu", i);
		cr_expect(eq(int, find_in_made(START + 0x40, 0), -1), "%zu", i);
	}
}

Test(lsda, destructors_at_the_pad_of_a_catch_clause_have_a_number_of_their_own)
{
	static const uint8_t both[] = {
		0xff, 0xff, 0x01, 8,	/* as above */
		0x00, 0x10, 0x40, 0x01, /* a catch clause */
		0x10, 0x10, 0x40, 0x00, /* destructors */
		0x07, 0x00,		/* filter 7, end of the chain */
	};
	struct lsda lsda = put_at_the_end(both, sizeof(both));

	cr_expect(eq(int, lsda_count(&lsda), 2));
	cr_expect(eq(int, lsda_number(&lsda, START + 0x40, 7), 0));
	cr_expect(eq(int, lsda_number(&lsda, START + 0x40, 0), 1));
}
