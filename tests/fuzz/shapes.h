/*
 * What a sound recording consists of, as <shim/format.h> says: each structure in each of
 * its files, and the fields of each, so that they can be changed one by one.
 */
#ifndef FUZZ_SHAPES_H
#define FUZZ_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_kind {
	FIELD_NUMBER,
	FIELD_COUNT, /* of what follows, or is elsewhere in the file */
	FIELD_SIZE,  /* in bytes; an offset */
	FIELD_LINK,  /* an address where the program had the file */
	FIELD_CLOCK,
	FIELD_WORD, /* a function word; which kind of node it is */
	FIELD_HEAD, /* of a record of a trace */
	FIELD_FLAG,
	FIELD_VERSION,
	FIELD_TEXT,
};

struct field {
	const char *name;
	uint32_t offset, size;
	enum field_kind kind;
};

struct shape {
	const char *name;
	const struct field *fields;
	uint32_t field_count;
};

/* A structure in a file. */
struct place {
	const struct shape *shape;
	uint32_t file;
	uint32_t size;
	uint64_t offset;
	uint64_t address; /* the program's; 0: none */
};

struct file {
	char *path;	     /* in the recording */
	const char *kind;    /* "calltree", "trace", ... or its name */
	unsigned char *data; /* as it was */
	uint64_t size;
	uint64_t used; /* from here on all is zero */
};

struct recording_shape {
	struct file *files;
	uint32_t file_count;
	struct place *places; /* by shape, then by file */
	uint32_t place_count;
	uint64_t first_clock, last_clock;
};

/* What is in the recording at @path, whose programs have ended. */
void shapes_read(struct recording_shape *recording, const char *path);

#endif
