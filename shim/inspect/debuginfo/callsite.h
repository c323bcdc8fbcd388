#ifndef SHIM_DEBUGINFO_CALLSITE_H
#define SHIM_DEBUGINFO_CALLSITE_H

#include "inspect/callsite.h"

#include <elfutils/libdw.h>

struct callsite_place {
	Dwarf *dwarf;
	Elf *elf;
	uint64_t address; /* where the call returns to, in the file */
	uint64_t bias;
};

/* What @caller, which has code there, says of the call. */
void callsite_read(Dwarf_Die *caller, const struct callsite_place *place,
		   struct callsite *callsite);

/* By which name @caller calls what returns to @address, or NULL. */
const char *callsite_called(Dwarf_Die *caller, uint64_t address);

/* Whether whoever compiled @caller saw @callee, which begins at @address, and
 * nobody else could define it. */
bool callsite_sees(Dwarf_Die *caller, Dwarf_Die *callee, Elf *elf,
		   uint64_t address);

#endif
