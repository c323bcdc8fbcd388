/*
 * Names and lines of functions that a process has found before: profrun top reads a
 * recording again and again, each time in a new process.
 */
#ifndef REPORT_MODEL_KNOWN_FUNCTIONS_H
#define REPORT_MODEL_KNOWN_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct object;

struct known_function {
	const char *object; /* known_object_key() */
	uint64_t address;   /* in the object's file */
	const char *name, *source_name;
	bool has_line;	  /* the line was looked up */
	const char *file; /* NULL: unknown */
	int line;
	bool is_new; /* found by this process */
};

/* From here on names are kept.  Without this call nothing is known. */
void known_functions_begin(void);
bool known_functions_are_kept(void);

/* Equal for objects of the same build at the same path. */
const char *known_object_key(const struct object *object);

/* The function, or NULL; it stays where it is until the next is added. */
struct known_function *known_functions_find(const char *object,
					    uint64_t address);
/* Adds a function, or replaces what was known of it.  The text must stay. */
void known_functions_add(const struct known_function *function);

uint32_t known_functions_count(void);
const struct known_function *known_functions_at(uint32_t number);

#endif
