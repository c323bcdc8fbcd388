/* Lists the names by which an object calls functions; runs in a sandbox, see
 * elf_names.c. */
#ifndef REPORT_NAMES_ELF_CALLEES_H
#define REPORT_NAMES_ELF_CALLEES_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdint.h>

typedef void take_called(const char *name);

/* Both arguments may be NULL. */
void called_by_table(Elf *elf, take_called *take);
/* Stops when @steps are used up, which it counts down. */
void called_by_sites(Dwarf *dwarf, take_called *take, uint64_t *steps);

#endif
