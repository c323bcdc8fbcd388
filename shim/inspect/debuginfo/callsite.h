#ifndef SHIM_DEBUGINFO_CALLSITE_H
#define SHIM_DEBUGINFO_CALLSITE_H

#include "inspect/callsite.h"

#include <elfutils/libdw.h>

struct callsite_place {
	Dwarf *dwarf;
	Elf *elf;
	uint64_t address; /* return address of the call, in the file */
	uint64_t bias;
};

/* Reads the values that the call passes, from the debug information of @caller, which
 * contains the call. */
void callsite_read(Dwarf_Die *caller, const struct callsite_place *place,
		   struct callsite *callsite);

/* The name by which @caller calls the function that returns to @address, or NULL. */
const char *callsite_called(Dwarf_Die *caller, uint64_t address);

/* Whether @callee, which begins at @address, was visible to the compiler of @caller,
 * and no other object could define the function. */
bool callsite_sees(Dwarf_Die *caller, Dwarf_Die *callee, Elf *elf,
		   uint64_t address);

#endif
