/* Names of code that a program made while it ran. */
#ifndef REPORT_READ_JIT_MAP_H
#define REPORT_READ_JIT_MAP_H

#include <stdint.h>

struct jit_code {
	uint64_t begin, end;
	const char *name;
	uint32_t line; /* in the file */
};

struct jit_map {
	struct jit_code *code; /* by begin, then by line */
	uint32_t count, room;
};

/* Reads "jit-map" in @directory, if it is there: lines "BEGIN SIZE NAME", both
 * hexadecimal. */
void jit_map_read(struct jit_map *map, int directory, const char *name);
/* The name of the code at @address: the one that was made last; NULL: none. */
const char *jit_map_find(const struct jit_map *map, uint64_t address);

#endif
