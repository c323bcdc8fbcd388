/*
 * Finds instructions that exist only to call the hooks of -finstrument-functions: the
 * call and the loads of its arguments.  Runs in a sandbox, see elf_names.c.
 */
#ifndef REPORT_NAMES_ELF_HOOK_SITES_H
#define REPORT_NAMES_ELF_HOOK_SITES_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether the object can call hooks, and its code can be read. */
bool hook_sites_may_be_there(Elf *elf);

/*
 * hook_sites_find - tell which of @count instructions belong to calls of hooks
 *
 * @addresses: of the instructions, sorted
 * @starts: of the code around each, where disassembling begins; 0: unknown
 * @is_site: gets the answers; false also for what cannot be read
 */
void hook_sites_find(Elf *elf, const uint64_t *addresses,
		     const uint64_t *starts, uint32_t count, bool *is_site);

#endif
