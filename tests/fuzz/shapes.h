/*
 * The structures of a sound recording according to <shim/format.h>, with the
 * fields of each, so that the fuzzer can change them one by one.
 */
#ifndef FUZZ_SHAPES_H
#define FUZZ_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_kind {
	FIELD_NUMBER,
	/* number of elements that follow, or are elsewhere in the file */
	FIELD_COUNT,
	FIELD_SIZE, /* a size in bytes, or an offset */
	FIELD_LINK, /* an address of the file in the program */
	FIELD_CLOCK,
	FIELD_WORD, /* a function word, or the kind of a node */
	FIELD_HEAD, /* the head of a trace record */
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
	uint64_t address; /* its address in the program; 0: none */
};

struct file {
	char *path;	     /* path in the recording */
	const char *kind;    /* "calltree", "trace", ... or the file's name */
	unsigned char *data; /* as it was */
	uint64_t size;
	uint64_t used; /* all bytes from here on are zero */
};

struct recording_shape {
	struct file *files;
	uint32_t file_count;
	struct place *places; /* by shape, then by file */
	uint32_t place_count;
	uint64_t first_clock, last_clock;
};

/* Finds the structures of the recording at @path, whose programs have ended. */
void shapes_read(struct recording_shape *recording, const char *path);

#endif
