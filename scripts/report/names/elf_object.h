/*
 * The object that a sandbox serves, and the answers about it.  The object has a Dwfl of
 * its own, with its only module at address 0, so addresses in the file are addresses in
 * the Dwfl.
 */
#ifndef REPORT_NAMES_ELF_OBJECT_H
#define REPORT_NAMES_ELF_OBJECT_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "names/elf_names.h"

/* The state of the process, which serves one object. */
struct elf_object {
	int other_end;
	FILE *out;
	Dwfl_Module *module;
	Dwarf *dwarf; /* set by the first elf_object_lines() */
	Dwarf_Addr dwarf_bias;
	struct lines *lines;
	bool has_zstd; /* compressed debug information */
};

extern struct elf_object elf_object;

/* Opens the object's file, which must have this build-id. */
enum names_opened elf_object_open(int fd, const void *id, size_t id_size);

/* The lines of the object; the first call reads its debug information. */
struct lines *elf_object_lines(void);

/* Reads the @count addresses of a request; free() them. */
uint64_t *elf_take_addresses(uint32_t count);

/* Sends an answer with @text and, if it is not NULL, @more. */
void elf_answer(struct names_answer answer, const char *text, const char *more);

/* Sends the last answer to a request. */
void elf_answer_done(uint64_t status);

/* Sends elfutils' last error about @what.  A missing name is no error. */
void elf_answer_note(const char *what);

/* Whether the limit allows a text of this size.  A name may begin at any byte of a
 * string table, which could turn one string into a million names. */
bool elf_answer_has_room(size_t size);
/* Raises the limit for another file, or sets it to its least. */
void elf_answer_grow_room(int fd);
void elf_answer_reset_room(void);

/* The demangled name, if it differs and the limit allows it; else NULL. */
const char *elf_source_name(const char *name);

#endif
