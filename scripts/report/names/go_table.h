/*
 * Go's own table of functions and lines, .gopclntab, which programs keep when they are
 * stripped.  Runs in a sandbox, see elf_names.c.
 */
#ifndef REPORT_NAMES_GO_TABLE_H
#define REPORT_NAMES_GO_TABLE_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

struct go_function {
	uint64_t start;
	const char *name; /* in the file */
	uint64_t record;  /* its position in the table */
};

/* Whether there is a table that is known: of Go 1.16 and later, for little-endian
 * processors with 64 bits. */
bool go_table_is_there(Elf *elf);

/* Finds the function around @address; false: no function is there. */
bool go_table_function(Elf *elf, uint64_t address,
		       struct go_function *function);

/* The place of @address, which is in the function, in the source; false: unknown.  *@file
 * is in the file. */
bool go_table_line(const struct go_function *function, uint64_t address,
		   const char **file, int *line);

#endif
