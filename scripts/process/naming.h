/* Names, objects and lines of instructions, with the functions that are inlined there. */
#ifndef PROCESS_NAMING_H
#define PROCESS_NAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "process/space.h"

/* A function at an instruction.  Its texts stay valid until the end of the program. */
struct named {
	const char *name;   /* its address if it has no name */
	const char *object; /* NULL: no file */
	const char *file;   /* NULL: the line is unknown */
	int line;
	bool is_inlined; /* into the next function of the chain */
	bool has_name;
};

/* At least one function, innermost first. */
struct chain {
	const struct named *functions;
	uint32_t count;
};

/* The form of names that are mangled; the default is NAMED_FULL. */
enum named_form { NAMED_FULL, NAMED_SHORT, NAMED_MANGLED };

/* Call this before names are looked up. */
void naming_choose(enum named_form form);

/* Looks names up in three steps: naming_want() for each address, naming_finish() once,
 * naming_get() for each address. */
void naming_want(struct space *space, uint64_t address);
void naming_finish(struct space *space);
struct chain naming_get(uint64_t address);

/* Drops all names, because modules have changed and addresses may mean other
 * functions. */
void naming_forget(void);

#endif
