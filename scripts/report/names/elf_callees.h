/* By which names an object calls functions; in a sandbox, see elf_names.c. */
#ifndef REPORT_NAMES_ELF_CALLEES_H
#define REPORT_NAMES_ELF_CALLEES_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdint.h>

typedef void take_called(const char *name);

/* Both may be NULL. */
void called_by_table(Elf *elf, take_called *take);
/* As far as @steps lead, which become less. */
void called_by_sites(Dwarf *dwarf, take_called *take, uint64_t *steps);

#endif
