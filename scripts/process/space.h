/*
 * The memory of a process, running or in a core file: what is mapped where, and bytes.
 * What it is read from knows process_memory.c or core.c.
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
	const char *name; /* for people: without directories */
	uint64_t start, end;
	bool is_read;	 /* what follows is known */
	uint64_t bias;	 /* address in memory - address in the file */
	uint64_t unwind; /* of .eh_frame_hdr; 0: there is none */
	unsigned char build_id[64];
	struct object object;
	/* for naming.c: addresses that were not asked for yet */
	uint64_t *wanted;
	uint32_t wanted_count, wanted_room;
};

struct space {
	/* Reads @size bytes within one page; false: they are not there. */
	bool (*read)(struct space *space, uint64_t address, void *bytes,
		     size_t size);
	/* By address; see space_add(). */
	struct mapping *mappings;
	uint32_t mapping_count, mapping_room;
	struct module *modules;
	uint32_t module_count, module_room;
	/* Pages that do not change. */
	struct map pages;
	unsigned char **page;
	uint32_t page_count, page_room;
	bool is_constant; /* no page changes */
};

/*
 * space_add - the next mapping, by address
 *
 * @path: as the kernel names it; NULL: no file.  @root stands before a path that is opened;
 * it and @path are copied.  @offset: in the file.
 */
void space_add(struct space *space, uint64_t start, uint64_t end,
	       uint64_t offset, bool is_writable, const char *path,
	       const char *root);
/* Forgets all mappings, modules and pages. */
void space_clear(struct space *space);

/* The mapping around @address, or NULL. */
const struct mapping *space_mapping(const struct space *space,
				    uint64_t address);
/* The module around @address with what its headers say, or NULL. */
struct module *space_module(struct space *space, uint64_t address);

/* Copies @size bytes; false: not all of them are there. */
bool space_read(struct space *space, uint64_t address, void *bytes,
		size_t size);

#endif
