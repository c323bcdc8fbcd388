/*
 * The rows that the unwinder keeps: what they have of the tables' rows, which rows have no
 * common form, and entries that another thread is writing.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "unwind/row_cache.c"

enum { RBX = 3, RBP = 6, R12 = 12, R15 = 15 };

/* CFA: rsp + 64; the return address below it; rbx and rbp saved. */
static struct cfi_machine usual(void)
{
	struct cfi_machine machine = { .fde.start = 0x401000,
				       .fde.return_register = WALK_IP };

	machine.row.cfa = (struct rule){ HOW_IS, WALK_SP, 64 };
	machine.row.rules[WALK_IP] = (struct rule){ HOW_AT, 0, -8 };
	machine.row.rules[RBP] = (struct rule){ HOW_AT, 0, -16 };
	machine.row.rules[RBX] = (struct rule){ HOW_AT, 0, -24 };
	return machine;
}

static struct cached_row stored(const struct cfi_machine *machine)
{
	uint64_t key = row_cache_key(0x401010, false);
	struct cached_row row;

	row_cache_store(key, machine);
	cr_assert(row_cache_find(key, &row));
	return row;
}

static bool is_simple(const struct cfi_machine *machine)
{
	uint64_t flags = stored(machine).cfa & 0xff;

	cr_assert(flags == ROW_SIMPLE || flags == ROW_COMPLEX);
	return flags == ROW_SIMPLE;
}

/* The distance / 8 of the register row_registers[@index], or -512. */
static int distance_of(const struct cached_row *row, unsigned index)
{
	int distance = row->distances >> (index * DISTANCE_BITS) &
		       DISTANCE_MASK;

	return distance >= 512 ? distance - 1024 : distance;
}

/* --- the common form --- */

Test(row_cache, a_usual_row_has_all_of_its_distances)
{
	struct cfi_machine machine = usual();
	struct cached_row row;
	int expected[6] = { -3, -2, -512, -512, -512, -512 };

	row = stored(&machine);
	cr_assert(eq(ulong, row.function, 0x401000));
	cr_assert(eq(ulong, row.cfa & 0xff, ROW_SIMPLE));
	cr_assert(eq(ulong, row.cfa >> 8 & 0xff, WALK_SP));
	cr_assert(eq(int, (int16_t)(row.cfa >> 16), -1));
	cr_assert(eq(int, (int32_t)(row.cfa >> 32), 64));
	for (unsigned i = 0; i < 6; i++)
		cr_assert(eq(int, distance_of(&row, i), expected[i]), "%u", i);

	machine.row.cfa = (struct rule){ HOW_IS, RBP, -80 };
	machine.row.rules[WALK_IP].value = 24;
	for (unsigned i = 0; i < 6; i++)
		machine.row.rules[row_registers[i]] = (struct rule){
			HOW_AT, 0, (i + 1) * 8
		};
	row = stored(&machine);
	cr_assert(eq(ulong, row.cfa & 0xff, ROW_SIMPLE));
	cr_assert(eq(ulong, row.cfa >> 8 & 0xff, RBP));
	cr_assert(eq(int, (int16_t)(row.cfa >> 16), 3));
	cr_assert(eq(int, (int32_t)(row.cfa >> 32), -80));
	for (unsigned i = 0; i < 6; i++)
		cr_assert(eq(int, distance_of(&row, i), (int)i + 1));
	cr_assert(eq(ulong, row.distances >> 60, 0));
}

Test(row_cache, a_frame_without_a_return_address_is_the_last)
{
	struct cfi_machine machine = usual();
	struct cached_row row;

	machine.row.rules[WALK_IP].how = HOW_UNDEFINED;
	machine.fde.is_signal_frame = true;
	row = stored(&machine);
	cr_assert(eq(ulong, row.cfa, ROW_LAST));
	cr_assert(eq(ulong, row.function, 0x401000));
}

Test(row_cache, the_frame_of_a_signal_is_complex)
{
	struct cfi_machine machine = usual();

	machine.fde.is_signal_frame = true;
	cr_assert(eq(ulong, stored(&machine).cfa, ROW_COMPLEX | ROW_SIGNAL));
}

Test(row_cache, the_frame_address_is_a_register_and_32_bits)
{
	static const int64_t fits[] = { 0, INT32_MAX, INT32_MIN };
	static const int64_t exceeds[] = { INT32_MAX + 1ll, INT32_MIN - 1ll,
					   1ll << 32 };
	struct cfi_machine machine = usual();

	for (unsigned i = 0; i < 3; i++) {
		machine.row.cfa.value = fits[i];
		cr_assert(is_simple(&machine));
		machine.row.cfa.value = exceeds[i];
		cr_assert(not(is_simple(&machine)));
	}
	machine = usual();
	machine.row.cfa.size = WALK_REGISTERS - 1;
	cr_assert(is_simple(&machine));
	machine.row.cfa.size = WALK_REGISTERS;
	cr_assert(not(is_simple(&machine)));
	for (uint8_t how = HOW_SAME; how <= HOW_EXPRESSION_IS; how++) {
		machine = usual();
		machine.row.cfa.how = how;
		cr_assert(eq(int, is_simple(&machine), how == HOW_IS));
	}
}

Test(row_cache, the_return_address_is_in_memory_nearby)
{
	static const int64_t fits[] = { 0, 32767 * 8, -32768 * 8 };
	static const int64_t exceeds[] = { 32768 * 8, -32769 * 8, 4, 9, -1 };
	struct cfi_machine machine = usual();

	for (unsigned i = 0; i < 3; i++) {
		machine.row.rules[WALK_IP].value = fits[i];
		cr_assert(is_simple(&machine));
		cr_assert(eq(int, (int16_t)(stored(&machine).cfa >> 16),
			     (int)(fits[i] / 8)));
	}
	for (unsigned i = 0; i < 5; i++) {
		machine.row.rules[WALK_IP].value = exceeds[i];
		cr_assert(not(is_simple(&machine)));
	}
	for (uint8_t how = HOW_SAME; how <= HOW_EXPRESSION_IS; how++) {
		machine = usual();
		machine.row.rules[WALK_IP].how = how;
		if (how != HOW_UNDEFINED)
			cr_assert(eq(int, is_simple(&machine), how == HOW_AT));
	}
}

Test(row_cache, preserved_registers_are_in_memory_nearby)
{
	static const int64_t fits[] = { 0, 511 * 8, -511 * 8 };
	static const int64_t exceeds[] = { 512 * 8, -512 * 8, -513 * 8, 4, -9 };

	for (unsigned number = 0; number < 6; number++) {
		struct cfi_machine machine = usual();
		struct rule *rule = &machine.row.rules[row_registers[number]];

		rule->how = HOW_AT;
		for (unsigned i = 0; i < 3; i++) {
			struct cached_row row;

			rule->value = fits[i];
			cr_assert(is_simple(&machine));
			row = stored(&machine);
			cr_assert(eq(int, distance_of(&row, number),
				     (int)(fits[i] / 8)));
		}
		for (unsigned i = 0; i < 5; i++) {
			rule->value = exceeds[i];
			cr_assert(not(is_simple(&machine)));
		}
		rule->value = -32;
		for (uint8_t how = HOW_SAME; how <= HOW_EXPRESSION_IS; how++) {
			rule->how = how;
			cr_assert(eq(int, is_simple(&machine),
				     how == HOW_AT || how == HOW_SAME));
		}
	}
}

Test(row_cache, other_registers_stay_as_they_are)
{
	for (unsigned number = 0; number < WALK_REGISTERS; number++) {
		struct cfi_machine machine = usual();
		bool is_other = number < 3 || number == 4 || number == 5 ||
				(number > 7 && number < 12);

		machine.row.rules[number] = (struct rule){ HOW_AT, 0, -40 };
		cr_assert(eq(int, is_simple(&machine), !is_other), "%u",
			  number);
	}
}

/* --- keys --- */

Test(row_cache, only_the_row_of_the_key_is_found)
{
	struct cfi_machine machine = usual();
	uint64_t key = row_cache_key(0x401010, true);
	struct cached_row row;

	cr_assert(not(row_cache_find(key, &row)));
	row_cache_store(key, &machine);
	cr_assert(row_cache_find(key, &row));
	cr_assert(not(row_cache_find(row_cache_key(0x401010, false), &row)));
	cr_assert(not(row_cache_find(row_cache_key(0x401011, true), &row)));
	cr_assert(
		not(row_cache_find(row_cache_key(0x800000401010, true), &row)));
}

Test(row_cache, most_of_some_thousand_rows_are_kept)
{
	struct cfi_machine machine = usual();
	uintptr_t at[4000], random = 1;
	unsigned kept = 0;

	for (unsigned i = 0; i < 4000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		at[i] = 0x401000 + i * 512 + (random >> 55);
		machine.fde.start = i;
		row_cache_store(row_cache_key(at[i], false), &machine);
	}
	for (unsigned i = 0; i < 4000; i++) {
		struct cached_row row;

		if (!row_cache_find(row_cache_key(at[i], false), &row))
			continue;
		cr_assert(eq(ulong, row.function, i));
		kept++;
	}
	cr_assert(gt(uint, kept, 3000));
}

Test(row_cache, nothing_is_found_after_clearing)
{
	struct cfi_machine machine = usual();
	struct cached_row row;

	/* The 65,536th has the number of the first again. */
	for (unsigned i = 0; i < 1u << 16; i++) {
		if (i % 4096 == 0)
			row_cache_store(row_cache_key(0x401010, i % 8192 == 0),
					&machine);
		row_cache_clear();
		if (i % 4096 == 0 || i == (1u << 16) - 1)
			for (int exact = 0; exact < 2; exact++)
				cr_assert(not(row_cache_find(
					row_cache_key(0x401010, exact), &row)));
	}
	row_cache_store(row_cache_key(0x401010, false), &machine);
	cr_assert(row_cache_find(row_cache_key(0x401010, false), &row));
}

/* --- entries that are written --- */

/* A reader may see any part of an entry older than the rest. */
Test(row_cache, a_half_written_entry_is_not_taken)
{
	struct cfi_machine old = usual(), new = usual();
	uint64_t key = row_cache_key(0x401010, false), other = key;
	struct cached_row *entry = slot_of(key), row, before, after;

	do
		other += 2;
	while (slot_of(other) != entry);
	row_cache_store(other, &old);
	before = *entry;
	new.fde.start = 0x402000;
	new.row.cfa.value = 128;
	new.row.rules[R12] = (struct rule){ HOW_AT, 0, -32 };
	row_cache_store(key, &new);
	after = *entry;
	for (unsigned written = 0; written < 32; written++) {
		*entry = before;
		if (written & 1)
			entry->address = after.address;
		if (written & 2)
			entry->function = after.function;
		if (written & 4)
			entry->distances = after.distances;
		if (written & 8)
			entry->cfa = after.cfa;
		if (written & 16)
			entry->sum = after.sum;
		cr_assert(eq(int, row_cache_find(key, &row), written == 31),
			  "%u", written);
	}
}
