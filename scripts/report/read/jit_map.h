/* Names and lines of code that a program made while it ran. */
#ifndef REPORT_READ_JIT_MAP_H
#define REPORT_READ_JIT_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* Where code in the source begins. */
struct jit_line {
	uint64_t offset;  /* of the code */
	const char *file; /* equal names have one address */
	int line;
};

struct jit_code {
	uint64_t begin, end;
	const char *name;
	uint32_t order;			 /* in which code was made */
	uint32_t first_line, line_count; /* in the map's, by offset */
	/* not NULL: each address is a line of this file, from @line on */
	const char *file;
	int line;
};

struct jit_map {
	struct jit_code *code; /* by begin, then by order */
	uint32_t count, room;
	struct jit_line *lines;
	uint32_t line_count, line_room;
};

/* Reads two files in @directory, which is @path, if they are there: "jit-map" has lines
 * "BEGIN SIZE NAME", both numbers hexadecimal; "jit-dump" is a jitdump. */
void jit_map_read(struct jit_map *map, int directory, const char *path);
/* Adds code that was made after that which is there. */
void jit_map_add(struct jit_map *map, const struct jit_code *code);
/* The code at @address: that which was made last; NULL: none. */
const struct jit_code *jit_map_find(const struct jit_map *map,
				    uint64_t address);
/* Orders the code, after the last was added. */
void jit_map_sort(struct jit_map *map);
/* The line of @address in @code; false: it is unknown. */
bool jit_map_line(const struct jit_map *map, const struct jit_code *code,
		  uint64_t address, struct jit_line *line);

#endif
