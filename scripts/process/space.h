/*
 * The memory of a process, running or in a core file: its mappings and its bytes.
 * process_memory.c and core.c read them from their sources.
 */
#ifndef PROCESS_SPACE_H
#define PROCESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "names/symbols.h"

struct mapping {
	uint64_t start, end;
	uint32_t module; /* NONE: no file */
	bool is_writable;
};

/* An ELF file that is mapped, or the kernel's vdso. */
struct module {
	const char *name; /* without directories, for messages */
	uint64_t start, end;
	bool is_read;	 /* the fields below are valid */
	uint64_t bias;	 /* address in memory - address in the file */
	uint64_t unwind; /* address of .eh_frame_hdr; 0: missing */
	unsigned char build_id[64];
	struct object object;
	/* of naming.c: addresses that were not looked up yet */
	uint64_t *wanted;
	uint32_t wanted_count, wanted_room;
};

struct space {
	/* Reads @size bytes within one page; false if they are missing. */
	bool (*read)(struct space *space, uint64_t address, void *bytes,
		     size_t size);
	/* By address; see space_add(). */
	struct mapping *mappings;
	uint32_t mapping_count, mapping_room;
	struct module *modules;
	uint32_t module_count, module_room;
	/* Copies of pages that do not change. */
	struct map pages;
	unsigned char **page;
	uint32_t page_count, page_room;
	bool is_constant; /* no page changes */
};

/*
 * space_add - adds the next mapping, by address
 *
 * @path is the kernel's name; NULL: no file.  @root is the prefix of paths that are
 * opened.  Both are copied.  @offset is in the file.
 */
void space_add(struct space *space, uint64_t start, uint64_t end,
	       uint64_t offset, bool is_writable, const char *path,
	       const char *root);
/* Drops all mappings, modules and pages. */
void space_clear(struct space *space);

/* The mapping that contains @address, or NULL. */
const struct mapping *space_mapping(const struct space *space,
				    uint64_t address);
/* The module that contains @address, with the data of its headers, or NULL. */
struct module *space_module(struct space *space, uint64_t address);

/* Copies @size bytes; false if a byte is missing. */
bool space_read(struct space *space, uint64_t address, void *bytes,
		size_t size);

#endif
