/*
 * Finds the functions of an instruction with debug information: the function
 * whose code contains it, and the functions that are inlined there.  Runs in a
 * sandbox, see elf_names.c.
 */
#ifndef REPORT_NAMES_ELF_FRAMES_H
#define REPORT_NAMES_ELF_FRAMES_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

#include "names/elf_lines.h"

/* The limit for nested inlined functions; deeper ones count for the deepest one
 * within it. */
#define FRAMES_DEPTH 32

/* A function of a chain.  Either its code begins at @start, or it has no code
 * of its own; then it has a name. */
struct frame_function {
	uint64_t start;
	Dwarf_Off die; /* its identity; 0: @start identifies it */
	const char *name;
	const char *file; /* NULL: unknown */
	int line;
	/* where the instruction is in it, or the inlined call: NULL: unknown */
	const char *place_file;
	int place_line;
};

struct frames;

/* The caller keeps @lines, which must outlive the frames.  @bias: see
 * lines_open(). */
struct frames *frames_open(struct lines *lines, Dwarf *dwarf, Dwarf_Addr bias);

/* Call this for all addresses before the first frames_find(). */
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

/* Finds the starts of the functions around @addresses, which are sorted, from
 * the symbol table; 0: unknown.  @loose, if not NULL, gets those of symbols
 * without a size, which end at the next symbol: another table may know a
 * function behind them. */
void frames_starts_by_symbols(Dwfl_Module *module, const uint64_t *addresses,
			      uint32_t count, uint64_t *starts,
			      uint64_t *loose);
/* Finds one function's start from the exception tables of @elf; 0: unknown. */
uint64_t frames_start_by_unwinding(Elf *elf, uint64_t address);

#endif
