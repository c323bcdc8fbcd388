/*
 * The sandbox that reads the file of an object: requests and answers.
 */
#ifndef REPORT_NAMES_OBJECT_PROCESS_H
#define REPORT_NAMES_OBJECT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "names/elf_names.h"
#include "names/sandbox.h"

struct object;

struct line {
	const char *file; /* NULL: unknown */
	int line;
	bool is_known; /* the line was requested already */
};

struct object_files {
	struct object *object;
	/* its fd is negative: the file must be opened again */
	struct sandbox sandbox;
	bool is_lost; /* reading the file failed */
	const char
		*other; /* file of another program in the other root, or NULL */
	uint64_t said;
	uint64_t used;	    /* time of the last use, as a counter */
	const char **names; /* source files, by number */
	uint32_t name_count, name_room;
	struct line *lines; /* parallel to object->addresses */
	uint32_t lines_asked;
};

/* Valid until the next answer. */
struct object_answer {
	struct names_answer head;
	char text[NAMES_TEXT_MAX + 1];
	char more[NAMES_TEXT_MAX + 1];
};

/* Handles one answer other than DONE; returns whether it is valid. */
typedef bool object_take_answer(struct object_files *files,
				const struct object_answer *answer,
				void *context);

/* Opens the object's file, or opens it again.  Returns false if it has no sandbox. */
bool object_process_is_open(struct object *object);

/* Makes a request about @count addresses; @take gets the answers. */
void object_process_ask(struct object *object, enum names_kind kind,
			const uint64_t *addresses, uint32_t count,
			object_take_answer *take, void *context);

/* Makes one request about the object; returns @unknown on failure. */
uint64_t object_process_ask_one(struct object *object, enum names_kind kind,
				uint64_t number, object_take_answer *take,
				void *context, uint64_t unknown);

/* Reads the answers to a request.  Returns false if the process is lost; otherwise
 * *@result is that of DONE. */
bool object_process_read(struct object_files *files, object_take_answer *take,
			 void *context, uint64_t *result);

#endif
