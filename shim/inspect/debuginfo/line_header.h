/*
 * The headers of line tables, with the names of the files.
 */
#ifndef SHIM_DEBUGINFO_LINE_HEADER_H
#define SHIM_DEBUGINFO_LINE_HEADER_H

#include "inspect/debuginfo/debuginfo.h"
#include "inspect/debuginfo/line_bytes.h"

#include <elfutils/libdw.h>

/* The line table of a unit. */
struct line_unit {
	struct line_bytes line, line_strings, strings;
	uint64_t offset;
	unsigned version, offset_size;
	unsigned minimum_length, opcode_base, line_range;
	int line_base;
	bool is_statement;
	unsigned char lengths[256];
	const unsigned char *program, *end;
};

/* Reads the directories in which the units were compiled.  False without memory. */
bool line_read_directories(Dwarf *dwarf);

/* Reads the header at @in into @unit.  False if the table cannot be used. */
bool line_read_header(struct line_unit *unit, struct line_bytes *in);

/* The number of the name of the @number-th file of the last header; UINT32_MAX if the
 * header has no such file, or without memory. */
uint32_t line_file_number(uint64_t number);

/* Stores the names of all files in @lines. */
void line_names(struct debuginfo_lines *lines);

/* Empties the names, and keeps their memory. */
void line_names_empty(void);
/* Forgets all data, without touching its memory. */
void line_header_forget(void);
/* Frees everything but the names. */
void line_header_free(void);

#endif
