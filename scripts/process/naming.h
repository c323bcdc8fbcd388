/* Names, objects and lines of instructions, with the functions that are inlined there. */
#ifndef PROCESS_NAMING_H
#define PROCESS_NAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "process/space.h"

/* A function at an instruction.  Texts live as long as we do. */
struct named {
	const char *name;   /* an address, if it has none */
	const char *object; /* NULL: in no file */
	const char *file;   /* NULL: the line is unknown */
	int line;
	bool is_inlined; /* into the one behind it */
	bool has_name;
};

/* The innermost first; there is at least one. */
struct chain {
	const struct named *functions;
	uint32_t count;
};

/* An address is wanted, then naming_finish() asks for all that are, then they are there. */
void naming_want(struct space *space, uint64_t address);
void naming_finish(struct space *space);
struct chain naming_get(uint64_t address);

/* Modules have changed: addresses may mean something else. */
void naming_forget(void);

#endif
