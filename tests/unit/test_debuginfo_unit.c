/*
 * Blocks in blocks, of debug information that the test makes while it is read.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "inspect/debuginfo/unit.c"

/* The depth of the latest block, and how many there are. */
static unsigned depth_now, blocks;

int dwarf_child(Dwarf_Die *die, Dwarf_Die *child)
{
	(void)die, (void)child;
	if (depth_now == blocks)
		return 1;
	depth_now++;
	return 0;
}

int dwarf_siblingof(Dwarf_Die *die, Dwarf_Die *sibling)
{
	(void)die, (void)sibling;
	return 1;
}

int dwarf_tag(Dwarf_Die *die)
{
	(void)die;
	return DW_TAG_lexical_block;
}

Dwarf_Off dwarf_dieoffset(Dwarf_Die *die)
{
	(void)die;
	return 1;
}

Dwarf_Die *dwarf_diecu(Dwarf_Die *die, Dwarf_Die *cu, uint8_t *address_size,
		       uint8_t *offset_size)
{
	(void)die, (void)cu, (void)address_size, (void)offset_size;
	return NULL;
}

int dwarf_entrypc(Dwarf_Die *die, Dwarf_Addr *address)
{
	(void)die, (void)address;
	return -1;
}

int dwarf_hasattr(Dwarf_Die *die, unsigned name)
{
	(void)die, (void)name;
	return 0;
}

int dwarf_haspc(Dwarf_Die *die, Dwarf_Addr address)
{
	(void)die, (void)address;
	return 0;
}

ptrdiff_t dwarf_ranges(Dwarf_Die *die, ptrdiff_t offset, Dwarf_Addr *base,
		       Dwarf_Addr *start, Dwarf_Addr *end)
{
	(void)die, (void)offset, (void)base, (void)start, (void)end;
	return 0;
}

static unsigned depth_read(unsigned there_are)
{
	static struct unit unit = { .depth = DEPTH_ALL };
	Dwarf_Die root = { .addr = NULL };

	blocks = there_are;
	depth_now = 0;
	read_children(&unit, &root, 0);
	return depth_now;
}

/* Damaged debug information may have cycles. */
Test(debuginfo_unit, blocks_are_read_to_a_depth_that_sources_do_not_have)
{
	cr_expect(eq(u32, depth_read(10), 10));
	cr_expect(eq(u32, depth_read(DEPTH_MAX), DEPTH_MAX));
	cr_expect(eq(u32, depth_read(1000000), DEPTH_MAX + 1));
}
