/*
 * Names and lines of functions that a process has found before: profrun top reads a
 * recording again and again, each time in a new process.
 */
#ifndef REPORT_MODEL_KNOWN_FUNCTIONS_H
#define REPORT_MODEL_KNOWN_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct model;
struct object;
struct symbol;

struct known_function {
	const char *object;		/* the key of its struct object */
	uint64_t address;		/* in the object's file */
	const char *name, *source_name; /* NULL: not found */
	uint32_t look;	  /* the one that found it, or found no name */
	bool has_line;	  /* the line was looked up */
	const char *file; /* NULL: unknown */
	int line;
	bool is_new; /* found by this process */
};

/* From here on names are kept.  Without this call nothing is known. */
void known_functions_begin(void);

/* Another look begins, which may find names that were not found before. */
void known_functions_look_again(void);

/* Like symbols_find(): looks up only names that are not known.  A known name is not in
 * doubt, because it was chosen among all. */
void known_functions_find_symbols(struct object *object, struct symbol *symbols,
				  uint32_t count);
/* Keeps the names of the model's functions, after all were chosen. */
void known_functions_keep(const struct model *model);

/* The function, or NULL; it stays where it is until the next is added. */
struct known_function *known_functions_find(const struct object *object,
					    uint64_t address);
void known_functions_add_line(struct known_function *known, const char *file,
			      int line);

/* Adds a function, or replaces what was known of it.  The text must stay. */
void known_functions_add(const struct known_function *function);
uint32_t known_functions_count(void);
const struct known_function *known_functions_at(uint32_t number);

#endif
