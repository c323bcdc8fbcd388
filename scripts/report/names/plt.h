/*
 * Finds names of linkage table entries (plt.c).
 */
#ifndef REPORT_NAMES_PLT_H
#define REPORT_NAMES_PLT_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plt_entry {
	uint64_t slot; /* the GOT slot through which it jumps */
	size_t symbol; /* number of the symbol, set by the caller */
	/* At most one of these is set. */
	uint64_t chooser; /* the resolver of the function */
	const char *name; /* elfutils' */
};

/* Whether the code at @address in the file is a linkage table entry. */
bool plt_slot(Elf *elf, uint64_t address, uint64_t *slot);
/* Stores the slots, at most @most, of symbols whose name @is_wanted; returns how many. */
uint32_t plt_slots(Elf *elf, bool (*is_wanted)(const char *name),
		   uint64_t *slots, uint32_t most);
/* Sorts @entries and finds the relocations of their slots. */
void plt_resolve(Elf *elf, struct plt_entry *entries, size_t count);

#endif
