/* Writes small ELF files for the tests. */
#ifndef SHIM_TEST_ELF_WRITER_H
#define SHIM_TEST_ELF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_FRAMES 52

/* .eh_frame for a function from 0x1000 to 0x1010. */
extern const unsigned char elf_frames[ELF_FRAMES];

/* What a file has; a size of 0 leaves a section out. */
struct contents {
	unsigned char id[80];
	size_t id_size;
	const char *info; /* the name of the section with debug information */
	const char *link;
	uint32_t checksum;
	const char *common;
	size_t padding;
	bool has_frames, has_symbols;
	bool is_empty;	   /* the file has no bytes of @info */
	const char *split; /* the unit's .dwo file; "": it has none */
	const char *dwo;   /* this is a .dwo file with a unit */
};

void elf_write(const char *path, const struct contents *contents);

#endif
