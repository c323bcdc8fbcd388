/* Walks through the debug information of a unit; runs in a sandbox, see elf_names.c. */
#ifndef REPORT_NAMES_ELF_DIES_H
#define REPORT_NAMES_ELF_DIES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* Looks at one entry.  Returns whether the walk shall visit its children. */
typedef bool die_visitor(Dwarf_Die *die, void *argument);

/* Calls @visit for the entries of @unit, parents first.  The limits are for hostile files:
 * the walk visits no children @depth levels below the unit, and stops when @steps are used
 * up, which it counts down. */
void dies_walk(Dwarf_Die *unit, int depth, uint64_t *steps, die_visitor *visit,
	       void *argument);
/* Whether functions may be declared inside of @die. */
bool die_is_scope(Dwarf_Die *die);

#endif
