/* Exceptions by type, and where they are thrown and caught. */
#ifndef REPORT_MODEL_EXCEPTIONS_H
#define REPORT_MODEL_EXCEPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"

struct model;
struct options;

/* A node, while it is placed; then all of one type, path and catcher. */
struct throw_part {
	uint32_t process, file;
	uint64_t node, catcher_node; /* the program's addresses */
	uint32_t type;		     /* number of its name */
	uint32_t path, catcher;	     /* NONE: unknown */
	bool is_throw;		     /* else these were caught */
	uint64_t count;
};

/* Of one type, or thrown in one path: parts[first..first + count). */
struct thrown {
	uint32_t type, path;
	uint64_t throws, catches;
	uint32_t first, count;
};

struct exceptions {
	struct throw_part *parts;
	uint32_t part_count, part_room;
	struct names types;	 /* as std::type_info has them */
	struct thrown *of_types; /* first and count are of throwers */
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

/* The name of type number @type as the source has it, or mangled; NULL: unknown. */
const char *exceptions_type_name(const struct exceptions *exceptions,
				 uint32_t type, const struct options *options);

#endif
