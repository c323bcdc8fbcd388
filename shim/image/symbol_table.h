/*
 * The functions in the symbol tables of an image's files, sorted by address.
 */
#ifndef SHIM_SYMBOL_TABLE_H
#define SHIM_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct image_entry;

struct table_symbol {
	uint64_t value;
	uint64_t section_end; /* 0: unknown */
	uint32_t size;
	uint32_t name;	   /* in @strings */
	uint32_t length;   /* of the name without a version */
	uint32_t file;	   /* the source file of a local symbol; 0: global */
	uint32_t function; /* symbols.c */
	uint32_t order;	   /* in the tables */
	bool has_dot;
	bool is_part;
	bool is_resolver; /* of an ifunc: STT_GNU_IFUNC */
};

/* Begins with zeros and @image. */
struct symbol_table {
	const struct image_entry *image;
	struct table_symbol *symbols;
	uint32_t count, room;
	char *strings;
	size_t strings_size;
	uint32_t read; /* symbols of all kinds */
};

/* Adds the first table of @type in @file, if there is one.  Returns 0 or -errno. */
int symbol_table_add(struct symbol_table *table, const struct elf_file *file,
		     uint32_t type);
/* Adds the PLT's entries in @code, the image's own file, and sorts. */
int symbol_table_finish(struct symbol_table *table, struct elf_file *code);
void symbol_table_free(struct symbol_table *table);

/* The length of the name without the compiler's suffix in "f.cold", "f.cold.1",
 * "f.part.0" and "f.__part.0"; @length if the name has no such suffix. */
uint32_t symbol_table_whole_length(const char *name, uint32_t length);

#endif
