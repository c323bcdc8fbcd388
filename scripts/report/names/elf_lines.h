/* Finds source locations of functions; runs in a sandbox, see elf_names.c. */
#ifndef REPORT_NAMES_ELF_LINES_H
#define REPORT_NAMES_ELF_LINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

struct lines;

/* @dwarf may be NULL; @bias is added to its addresses.  Never returns NULL. */
struct lines *lines_open(Dwarf *dwarf, Dwarf_Addr bias);
bool lines_are_there(const struct lines *lines);
/* Finds the location of the function that begins at @address; false if it is
 * unknown. */
bool lines_find(struct lines *lines, uint64_t address, const char **file,
		int *line);
/* The line of the instruction at @address: false if it is unknown. */
bool lines_row(const struct lines *lines, uint64_t address, const char **file,
	       int *line);
/* Finds the unit with the instruction at @address, and the address within
 * it. */
bool lines_unit(const struct lines *lines, uint64_t *address, Dwarf_Die *unit);
/* The path of a source file of @unit: relative names are below its directory.  NULL stays
 * NULL. */
const char *lines_path(Dwarf_Die *unit, const char *file);
/* Finds the declaration of the function @die of @unit. */
bool lines_declared(Dwarf_Die *unit, Dwarf_Die *die, const char **file,
		    int *line);

#endif
