/*
 * The units of an address, in files that the test makes: it is libdw itself.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *realloc_at_guard(void *old, size_t size);

#define realloc realloc_at_guard
#include "inspect/debuginfo/units.c"
#undef realloc

#define UNITS  1200
#define RANGES 2 /* of a unit */

struct made_unit {
	uint8_t type;
	Dwarf_Addr start[RANGES], end[RANGES];
};

struct Dwarf {
	unsigned count;
	unsigned readings; /* how often all units were read */
	long listed; /* .debug_aranges: the unit of every address; -1: none */
	struct made_unit unit[UNITS];
};

static Dwarf made[6];
static Dwarf *now_read;
static unsigned allocations_left = ~0u;

/* --- libdw; the offset of a unit is its index --- */

int dwarf_get_units(Dwarf *dwarf, Dwarf_CU *cu, Dwarf_CU **next_cu,
		    Dwarf_Half *version, uint8_t *type, Dwarf_Die *unit,
		    Dwarf_Die *split)
{
	uintptr_t index = (uintptr_t)cu;

	(void)version;
	(void)split;
	now_read = dwarf;
	dwarf->readings += index == 0;
	if (index == dwarf->count)
		return 1;
	*type = dwarf->unit[index].type;
	*next_cu = (Dwarf_CU *)(index + 1);
	unit->addr = (void *)index;
	return 0;
}

ptrdiff_t dwarf_ranges(Dwarf_Die *unit, ptrdiff_t at, Dwarf_Addr *base,
		       Dwarf_Addr *start, Dwarf_Addr *end)
{
	const struct made_unit *of = &now_read->unit[(uintptr_t)unit->addr];

	if (at == RANGES)
		return 0;
	*base = 0;
	*start = of->start[at];
	*end = of->end[at];
	return at + 1;
}

Dwarf_Off dwarf_dieoffset(Dwarf_Die *die)
{
	return (Dwarf_Off)die->addr;
}

Dwarf_Die *dwarf_offdie(Dwarf *dwarf, Dwarf_Off offset, Dwarf_Die *die)
{
	if (offset >= dwarf->count)
		return NULL;
	die->addr = (void *)offset;
	return die;
}

Dwarf_Die *dwarf_addrdie(Dwarf *dwarf, Dwarf_Addr address, Dwarf_Die *die)
{
	(void)address;
	return dwarf->listed < 0 ?
		       NULL :
		       dwarf_offdie(dwarf, (Dwarf_Off)dwarf->listed, die);
}

/* --- memory that ends where nothing is mapped --- */

static void *realloc_at_guard(void *old, size_t size)
{
	size_t pages = (size + 4095) / 4096 * 4096;
	static size_t old_size[64];
	static char *had[64];
	char *memory;

	if (allocations_left == 0)
		return NULL;
	allocations_left--;
	memory = mmap(NULL, pages + 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(memory != MAP_FAILED);
	cr_assert(eq(int, mprotect(memory + pages, 4096, PROT_NONE), 0));
	memory += pages - size;
	for (unsigned i = 0; i < 64; i++)
		if (had[i] == old) {
			if (old)
				memcpy(memory, old, old_size[i]);
			had[i] = memory;
			old_size[i] = size;
			return memory;
		}
	abort(); /* more lists than the test makes */
}

/* --- files --- */

static Dwarf *empty_file(unsigned number)
{
	made[number].count = made[number].readings = 0;
	made[number].listed = -1;
	return &made[number];
}

static void add(Dwarf *file, uint8_t type, Dwarf_Addr start, Dwarf_Addr end)
{
	struct made_unit *unit = &file->unit[file->count++];

	*unit = (struct made_unit){ .type = type };
	unit->start[0] = start;
	unit->end[0] = end;
}

static long find(Dwarf *file, uint64_t address)
{
	Dwarf_Die unit;

	return units_find(file, address, &unit) ? (long)unit.addr : -1;
}

/* Looks at all units, in the order of the file. */
static long find_by_all(const Dwarf *file, uint64_t address)
{
	for (unsigned i = 0; i < file->count; i++)
		for (unsigned j = 0; j < RANGES; j++)
			if (file->unit[i].start[j] <= address &&
			    address < file->unit[i].end[j])
				return i;
	return -1;
}

static uint64_t random_below(uint64_t limit)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % limit;
}

/* Short ranges, some long ones around them, and some that are empty or wrong. */
static void make_random(Dwarf *file, unsigned count)
{
	uint64_t all = count * 4 + 8;

	for (unsigned i = 0; i < count; i++) {
		uint64_t start = random_below(all);
		bool is_long = random_below(16) == 0;

		add(file, random_below(2) ? DW_UT_compile : DW_UT_skeleton,
		    start, start + random_below(is_long ? all : 6));
		if (random_below(8) == 0) {
			file->unit[i].start[1] = random_below(all);
			file->unit[i].end[1] = random_below(all);
		}
	}
}

/* --- tests --- */

/* The list has room for 256 ranges at first. */
Test(units, the_first_unit_that_covers_an_address_is_found)
{
	static const unsigned counts[] = { 0,	1,   2,	  3,   7,   100,
					   254, 255, 256, 257, 600, UNITS };

	for (unsigned round = 0; round < 40; round++)
		for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts);
		     i++) {
			Dwarf *file = empty_file(0);

			units_forget();
			make_random(file, counts[i]);
			for (uint64_t at = 0; at < counts[i] * 8 + 16; at++)
				cr_assert(eq(long, find(file, at),
					     find_by_all(file, at)),
					  "address %u of %u units",
					  (unsigned)at, counts[i]);
			cr_assert(eq(uint, file->readings, 1));
		}
}

Test(units, a_list_that_is_just_full_ends_there)
{
	Dwarf *file = empty_file(0);

	for (unsigned i = 0; i < 256; i++)
		add(file, DW_UT_compile, i * 16, i * 16 + 8);
	cr_assert(eq(long, find(file, 255 * 16 + 7), 255));
	cr_assert(eq(long, find(file, 255 * 16 + 8), -1));
	cr_assert(eq(long, find(file, ~0ull), -1));
}

Test(units, only_compiled_code_has_units)
{
	Dwarf *file = empty_file(0);

	add(file, DW_UT_type, 0, 100);
	add(file, DW_UT_partial, 0, 100);
	add(file, DW_UT_split_compile, 0, 100);
	add(file, DW_UT_skeleton, 10, 20);
	add(file, DW_UT_compile, 30, 40);
	cr_assert(eq(long, find(file, 15), 3));
	cr_assert(eq(long, find(file, 35), 4));
	cr_assert(eq(long, find(file, 25), -1));
}

Test(units, an_index_of_addresses_needs_no_reading)
{
	Dwarf *file = empty_file(0);

	add(file, DW_UT_compile, 0, 100);
	add(file, DW_UT_compile, 100, 200);
	file->listed = 1;
	cr_assert(eq(long, find(file, 150), 1));
	cr_assert(eq(uint, file->readings, 0));
	cr_assert(eq(long, find(NULL, 150), -1));
}

Test(units, four_files_are_read_once)
{
	for (unsigned i = 0; i < 6; i++)
		add(empty_file(i), DW_UT_compile, i * 10, i * 10 + 10);
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < 4; i++)
			cr_assert(eq(long, find(&made[i], i * 10 + 5), 0));
	for (unsigned i = 0; i < 4; i++)
		cr_assert(eq(uint, made[i].readings, 1));
	/* The fifth takes the place of the first one, the sixth that of the second. */
	for (unsigned i = 4; i < 6; i++) {
		cr_assert(eq(long, find(&made[i], i * 10 + 5), 0));
		cr_assert(eq(long, find(&made[i], i * 10 - 5), -1));
	}
	for (unsigned i = 2; i < 6; i++) {
		cr_assert(eq(long, find(&made[i], i * 10 + 5), 0));
		cr_assert(eq(uint, made[i].readings, 1));
	}
	cr_assert(eq(long, find(&made[0], 5), 0));
	cr_assert(eq(uint, made[0].readings, 2));
}

Test(units, a_file_at_the_same_address_is_read_after_forgetting)
{
	for (unsigned i = 0; i < 4; i++) {
		add(empty_file(i), DW_UT_compile, 0, 10);
		cr_assert(eq(long, find(&made[i], 5), 0));
	}
	units_forget();
	for (unsigned i = 0; i < 4; i++) {
		add(empty_file(i), DW_UT_compile, 10, 20);
		cr_assert(eq(long, find(&made[i], 5), -1));
		cr_assert(eq(long, find(&made[i], 15), 0));
	}
}

Test(units, without_memory_the_units_read_before_are_found)
{
	Dwarf *file = empty_file(0);

	for (unsigned i = 0; i < 300; i++)
		add(file, DW_UT_compile, i * 16, i * 16 + 8);
	allocations_left = 0;
	cr_assert(eq(long, find(file, 4), -1));
	units_forget();
	allocations_left = 1;
	cr_assert(eq(long, find(file, 255 * 16), 255));
	cr_assert(eq(long, find(file, 256 * 16), -1));
	cr_assert(eq(long, find(file, 299 * 16), -1));
}
