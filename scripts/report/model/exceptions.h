/* Exceptions by type, with the paths that throw and those that catch them. */
#ifndef REPORT_MODEL_EXCEPTIONS_H
#define REPORT_MODEL_EXCEPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"

struct model;
struct options;

/* A node while it is being read; later the sum of one type, path and
 * catcher. */
struct throw_part {
	uint32_t process, file;
	uint64_t node, catcher_node; /* addresses in the program */
	uint32_t type;		     /* number of its name */
	uint32_t path, catcher;	     /* NONE: unknown */
	/* a throw; false: a catch of such throws */
	bool is_throw;
	uint64_t count;
};

/* The parts of one type, or of one throwing path: parts[first..first +
 * count). */
struct thrown {
	uint32_t type, path;
	uint64_t throws, catches;
	uint32_t first, count;
};

struct exceptions {
	struct throw_part *parts;
	uint32_t part_count, part_room;
	struct names types;	 /* names as in std::type_info */
	struct thrown *of_types; /* first and count index throwers */
	uint32_t type_count;
	struct thrown *throwers;
	uint32_t thrower_count;
	uint64_t throws, catches;
};

/* exceptions.c, in the same way. */
void exceptions_list(struct model *model, uint32_t process);
void exceptions_place(struct model *model, uint32_t process, uint32_t file);
void exceptions_move(struct model *model, const uint32_t *own,
		     const uint32_t *numbers);
void exceptions_measure(struct model *model);

/* The demangled name of type number @type, or its mangled name; NULL:
 * unknown. */
const char *exceptions_type_name(const struct exceptions *exceptions,
				 uint32_t type, const struct options *options);

#endif
