/* Where functions were written; in a sandbox, see elf_names.c. */
#ifndef REPORT_NAMES_ELF_LINES_H
#define REPORT_NAMES_ELF_LINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

struct lines;

/* @dwarf may be NULL; @bias is added to its addresses.  Never NULL. */
struct lines *lines_open(Dwarf *dwarf, Dwarf_Addr bias);
bool lines_are_there(const struct lines *lines);
/* Of the function that begins at @address: false if it is unknown. */
bool lines_find(struct lines *lines, uint64_t address, const char **file,
		int *line);

#endif
