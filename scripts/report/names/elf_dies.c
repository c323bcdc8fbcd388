/*
 * Walks through the debug information of a unit with libdw, without recursion.
 */
#include "names/elf_dies.h"

#include <dwarf.h>

#define DEPTH_MAX 64

void dies_walk(Dwarf_Die *unit, int depth, uint64_t *steps, die_visitor *visit,
	       void *argument)
{
	Dwarf_Die stack[DEPTH_MAX + 1];
	int at = 0;

	if (depth > DEPTH_MAX)
		depth = DEPTH_MAX;
	if (dwarf_child(unit, &stack[0]) != 0)
		return;
	while (at >= 0 && *steps > 0) {
		--*steps;
		if (visit(&stack[at], argument) && at < depth &&
		    dwarf_child(&stack[at], &stack[at + 1]) == 0) {
			at++;
			continue;
		}
		while (at >= 0 && dwarf_siblingof(&stack[at], &stack[at]) != 0)
			at--;
	}
}

bool die_is_scope(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type: return true;
	default: return false;
	}
}
