/*
 * Names for addresses.  Only elf_names.c knows elfutils, and it runs in sandboxes;
 * only symbols.c opens files that a recording names.
 */
#ifndef REPORT_NAMES_SYMBOLS_H
#define REPORT_NAMES_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct names;

struct object_files;

/* An image file, however often and by whomever it was loaded. */
struct object {
	const char *path;
	const unsigned char *build_id;
	uint32_t build_id_size;
	uint32_t functions; /* recorded in it */
	bool opened;
	struct object_files *files; /* NULL: not there, or another build */
	uint64_t *addresses; /* that symbols_find() was asked for, sorted */
	uint32_t address_count;
};

struct symbol {
	uint64_t address;	 /* in the file; what is asked for */
	const char *name;	 /* as linked; NULL: it has none */
	const char *source_name; /* as the source has it, or the same */
	bool is_exact;		 /* the name's address is @address */
	bool is_global;
	bool has_others;  /* names that are as good ... */
	bool is_in_doubt; /* ... and another one in the source */
};

/* Before there is much in memory: see names/sandbox.h. */
void symbols_begin(void);

/* Lets elfutils ask debuginfod servers; else it cannot use the network. */
void symbols_allow_network(void);

/* Names @count symbols, sorted by address, without equal ones. */
void symbols_find(struct object *object, struct symbol *symbols, size_t count);

/* A variable around an address. */
struct data_symbol {
	uint64_t address;	 /* in the file; what is asked for */
	uint64_t start;		 /* of the variable */
	const char *name;	 /* as linked; NULL: there is none */
	const char *source_name; /* as in struct symbol */
};

/* The same as symbols_find, for variables. */
void symbols_find_data(struct object *object, struct data_symbol *symbols,
		       size_t count);

/* A function that the object has a symbol for; of an address the best name. */
struct function_symbol {
	uint64_t address, size; /* in the file */
	const char *name;
	bool is_global;
	int order; /* in the symbol table */
};

/* All of them, by address; *@count is 0 if the object is not there. */
struct function_symbol *symbols_list(struct object *object, size_t *count);

/* Where the function that begins at @address was written: false if unknown. */
bool symbols_line(struct object *object, uint64_t address, const char **file,
		  int *line);

/* A function of a frame: code of its own begins at @start, or it is only inlined. */
struct frame_symbol {
	uint64_t start; /* in the file; 0: there is no such code */
	const char *
		name; /* as linked, if @start is 0; and where it was written: */
	const char *file; /* NULL: unknown */
	int line;
};

/* What frames_find() in names/elf_frames.h says of @count instructions, whose addresses
 * are sorted: @take gets the functions around each, the outermost first. */
void symbols_frames(struct object *object, const uint64_t *addresses,
		    uint32_t count,
		    void (*take)(void *context, uint32_t number, uint32_t id,
				 const struct frame_symbol *function),
		    void *context);

/* For each function that symbols_frames() says, in its order: where the instruction, or the
 * call of the next inlined function, is in the source.  @file is NULL if that is unknown. */
void symbols_places(struct object *object, const uint64_t *addresses,
		    uint32_t count,
		    void (*take)(void *context, uint32_t number,
				 const char *file, int line),
		    void *context);

/* Of an object whose functions have been looked for: whether it has no table of
 * symbols, and no debug file with one; whether it has debug information.  What is not
 * there lacks nothing. */
bool symbols_are_stripped(struct object *object);
bool symbols_have_lines(struct object *object);

/* For names/aliases.c.  Adds the names by which @object calls functions through its linkage
 * table; and those that its debug information has call sites of, as far as @steps lead,
 * which become less. */
void symbols_called_by_table(struct object *object, struct names *called);
void symbols_called_by_sites(struct object *object, struct names *called,
			     uint64_t *steps);
/* All names of the functions that begin at @count addresses, which are sorted, in the
 * order of the table. */
void symbols_names_at(struct object *object, const uint64_t *addresses,
		      uint32_t count,
		      void (*take)(void *context, uint32_t number,
				   const char *name, const char *source_name),
		      void *context);

/* @name as the source has it, or @name; and the same where nothing is at stake. */
const char *demangle(const char *name);

#endif
