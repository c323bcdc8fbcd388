/*
 * Which functions an instruction belongs to: the one whose code it is in, and those that
 * are inlined there, by debug information; in a sandbox, see elf_names.c.
 */
#ifndef REPORT_NAMES_ELF_FRAMES_H
#define REPORT_NAMES_ELF_FRAMES_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

#include "names/elf_lines.h"

/* Functions that are inlined in each other; deeper ones count for the deepest of these. */
#define FRAMES_DEPTH 32

/* One of them.  Either its code begins at @start, or there is no code of it alone: then
 * it has a name. */
struct frame_function {
	uint64_t start;
	Dwarf_Off die; /* what identifies it; 0: @start does */
	const char *name;
	const char *file; /* NULL: unknown */
	int line;
	/* where the instruction is in it, or the inlined call: NULL: unknown */
	const char *place_file;
	int place_line;
};

struct frames;

/* @lines stays the caller's and must outlive it.  @bias: see lines_open(). */
struct frames *frames_open(struct lines *lines, Dwarf *dwarf, Dwarf_Addr bias);

/* Has to be called for all addresses before the first is looked for. */
void frames_list(struct frames *frames, uint64_t address);

/*
 * frames_find - lists the functions around @address, the outermost first
 *
 * Without @wants_places the places stay unknown, and no table of lines is read.
 *
 * Returns how many of @chain were filled; 0 if debug information says nothing.
 */
uint32_t frames_find(struct frames *frames, uint64_t address, bool wants_places,
		     struct frame_function chain[FRAMES_DEPTH]);

/* Where the functions around @addresses begin, which are sorted, as the table of symbols
 * tells; 0: unknown. */
void frames_starts_by_symbols(Dwfl_Module *module, const uint64_t *addresses,
			      uint32_t count, uint64_t *starts);
/* The same for one, as the table for exceptions of @elf tells;
 * 0: unknown. */
uint64_t frames_start_by_unwinding(Elf *elf, uint64_t address);

#endif
