/*
 * Finds names for addresses.  Only the elf_*.c files use elfutils, and they run in
 * sandboxes; only object_file.c opens files that a recording names.
 */
#ifndef REPORT_NAMES_SYMBOLS_H
#define REPORT_NAMES_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct names;

struct object_files;

/* An image file; one object for all of its loaded images. */
struct object {
	const char *path;
	const char *
		key; /* equal for the same build at the same path; of functions */
	const unsigned char *build_id;
	uint32_t build_id_size;
	uint32_t functions; /* number of its functions in the recording */
	bool opened;
	struct object_files *files; /* NULL: missing, or another build */
	uint64_t *addresses;	    /* addresses for symbols_find(), sorted */
	uint32_t address_count;
};

struct symbol {
	uint64_t address;	 /* requested address in the file */
	const char *name;	 /* linker name; NULL: none */
	const char *source_name; /* source name, or the linker name */
	bool is_exact;		 /* the name begins exactly at @address */
	bool is_global;
	bool has_others;  /* equally good names exist */
	bool is_in_doubt; /* ... and one of them differs in the source */
};

/* Call this while the process has little memory: see names/sandbox.h. */
void symbols_begin(void);

/* Names @count symbols, sorted by address, without duplicates. */
void symbols_find(struct object *object, struct symbol *symbols, size_t count);

/* A variable around an address. */
struct data_symbol {
	uint64_t address;	 /* requested address in the file */
	uint64_t start;		 /* start of the variable */
	const char *name;	 /* linker name; NULL: none */
	const char *source_name; /* as in struct symbol */
};

/* Like symbols_find(), for variables. */
void symbols_find_data(struct object *object, struct data_symbol *symbols,
		       size_t count);

/* A function with a symbol; each address has its best name. */
struct function_symbol {
	uint64_t address, size; /* in the file */
	const char *name;
	bool is_global;
	int order; /* position in the symbol table */
};

/* All functions of the object, by address; *@count is 0 if the object is
 * missing. */
struct function_symbol *symbols_list(struct object *object, size_t *count);

/* Finds the source location of the function that begins at @address; false if
 * it is unknown. */
bool symbols_line(struct object *object, uint64_t address, const char **file,
		  int *line);

/* A function of a frame: its code begins at @start, or it exists only
 * inlined. */
struct frame_symbol {
	uint64_t start;	  /* in the file; 0: no code of its own */
	const char *name; /* linker name if @start is 0 */
	const char *file; /* NULL: unknown */
	int line;
};

/* Finds the chains of frames_find() (names/elf_frames.h) for @count
 * instructions, sorted by address: @take gets the functions around each, the
 * outermost first. */
void symbols_frames(struct object *object, const uint64_t *addresses,
		    uint32_t count,
		    void (*take)(void *context, uint32_t number, uint32_t id,
				 const struct frame_symbol *function),
		    void *context);

/* Finds which of @count instructions, sorted by address, are part of a call of the hooks of
 * -finstrument-functions. */
void symbols_hook_sites(struct object *object, const uint64_t *addresses,
			uint32_t count, bool *is_site);

/* An instruction. */
struct instruction {
	uint64_t address;
	uint64_t target; /* where a jump or a call leads; 0: unknown */
	const char *text;
};

enum symbols_code { CODE_READ, CODE_MISSING, CODE_NO_READER };

/* Disassembles the code from @begin to @end in the object's file; free()
 * *@instructions. */
enum symbols_code symbols_code(struct object *object, uint64_t begin,
			       uint64_t end, struct instruction **instructions,
			       uint32_t *count);

/* For each function that symbols_frames() says, in its order: where the instruction, or the
 * call of the next inlined function, is in the source.  @file is NULL if that is unknown. */
void symbols_places(struct object *object, const uint64_t *addresses,
		    uint32_t count,
		    void (*take)(void *context, uint32_t number,
				 const char *file, int line),
		    void *context);

/* For an object whose functions were looked up: whether it lacks a symbol table
 * (also in a debug file), and whether it has debug information.  A missing
 * object lacks nothing. */
bool symbols_are_stripped(struct object *object);
bool symbols_have_lines(struct object *object);
/* Whether it has debug information that cannot be read, because it is compressed with zstd
 * and elfutils is older. */
bool symbols_have_zstd(struct object *object);

/* For names/aliases.c.  Adds the names by which @object calls functions:
 * through its linkage table, and at the call sites in its debug information, as
 * far as @steps last, which are counted down. */
void symbols_called_by_table(struct object *object, struct names *called);
void symbols_called_by_sites(struct object *object, struct names *called,
			     uint64_t *steps);
/* Gets all names of the functions that begin at @count sorted addresses, in the
 * order of the symbol table. */
void symbols_names_at(struct object *object, const uint64_t *addresses,
		      uint32_t count,
		      void (*take)(void *context, uint32_t number,
				   const char *name, const char *source_name),
		      void *context);

/* The source form of @name, or @name. */
const char *demangle(const char *name);

#endif
