/*
 * Linkage table entries (plt.c).
 */
#ifndef REPORT_NAMES_PLT_H
#define REPORT_NAMES_PLT_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plt_entry {
	uint64_t slot; /* what it jumps through */
	size_t symbol; /* the caller's */
	/* One of these, or none. */
	uint64_t chooser; /* the function that chooses what is jumped to */
	const char *name; /* elfutils' */
};

/* Whether the code at @address in the file is such an entry. */
bool plt_slot(Elf *elf, uint64_t address, uint64_t *slot);
/* Sorts @entries and finds what their slots are relocated with. */
void plt_resolve(Elf *elf, struct plt_entry *entries, size_t count);

#endif
