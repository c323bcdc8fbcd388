/*
 * Reads the memory of other processes.  The parts of ELF files that unwinding needs are
 * read from the mappings of the process, so the files may be deleted, replaced or in
 * another mount namespace.  Read-only pages are read once.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "process/space.h"

#define PAGE	     4096u
#define HEADERS_MAX  64
#define VDSO	     "[vdso]"
#define VDSO_SIZE    (64u << 10)
#define NOTES_MAX    (64u << 10)
#define CACHED_PAGES 65536u

/* The name from here of a file that is mapped as @path: where only the root directory of the
 * process is another one, the kernel has resolved that already. */
static const char *name_here(const char *root, const char *path)
{
	const char *inside = keep_format("%s%s", root, path);

	return root[0] && access(inside, F_OK) != 0 && access(path, F_OK) == 0 ?
		       keep_text(path, SIZE_MAX) :
		       inside;
}

void space_add(struct space *space, uint64_t start, uint64_t end,
	       uint64_t offset, bool is_writable, const char *path,
	       const char *root)
{
	struct module *last = space->module_count ?
				      &space->modules[space->module_count - 1] :
				      NULL;
	bool is_module = path && (path[0] == '/' || !strcmp(path, VDSO));
	uint32_t module = NONE;

	if (is_module && offset == 0) {
		GROW(space->modules, space->module_count, space->module_room);
		last = &space->modules[space->module_count++];
		*last = (struct module){ .start = start };
		last->object.path = path[0] == '/' ? name_here(root, path) :
						     VDSO;
		last->name = keep_text(base_name(path), SIZE_MAX);
	} else if (is_module && last) {
		/* A file that is mapped only for its data has no header. */
		size_t before = strlen(last->object.path), size = strlen(path);

		is_module = before >= size &&
			    !strcmp(last->object.path + before - size, path);
	}
	if (is_module && last) {
		last->end = end;
		module = (uint32_t)(last - space->modules);
	}
	GROW(space->mappings, space->mapping_count, space->mapping_room);
	space->mappings[space->mapping_count++] = (struct mapping){
		start, end, module, is_writable
	};
}

void space_clear(struct space *space)
{
	uint32_t i;

	for (i = 0; i < space->module_count; i++)
		free(space->modules[i].wanted);
	for (i = 0; i < space->page_count; i++)
		free(space->page[i]);
	map_free(&space->pages);
	space->pages = (struct map){ .count = 0 };
	space->mapping_count = space->module_count = space->page_count = 0;
}

const struct mapping *space_mapping(const struct space *space, uint64_t address)
{
	uint32_t low = 0, high = space->mapping_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (space->mappings[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && address < space->mappings[low - 1].end ?
		       &space->mappings[low - 1] :
		       NULL;
}

/* --- bytes --- */

/* Returns NULL if the page is missing or may change. */
static const unsigned char *constant_page(struct space *space, uint64_t address)
{
	uint64_t start = address & ~(uint64_t)(PAGE - 1);
	uint32_t number = map_get(&space->pages, start);
	const struct mapping *mapping;
	unsigned char *bytes;

	if (number != NONE)
		return space->page[number];
	mapping = space_mapping(space, address);
	if (!mapping || (mapping->is_writable && !space->is_constant) ||
	    space->page_count == CACHED_PAGES)
		return NULL;
	bytes = allocate(1, PAGE);
	if (!space->read(space, start, bytes, PAGE)) {
		free(bytes);
		return NULL;
	}
	GROW(space->page, space->page_count, space->page_room);
	space->page[space->page_count] = bytes;
	map_set(&space->pages, start, space->page_count++);
	return bytes;
}

bool space_read(struct space *space, uint64_t address, void *to, size_t size)
{
	unsigned char *bytes = to;

	while (size > 0) {
		size_t offset = address & (PAGE - 1), part = PAGE - offset;
		const unsigned char *page = constant_page(space, address);

		if (part > size)
			part = size;
		if (page)
			memcpy(bytes, page + offset, part);
		else if (!space->read(space, address, bytes, part))
			return false;
		address += part;
		bytes += part;
		size -= part;
	}
	return true;
}

/* --- modules --- */

/* Copies the contents of the build-id note. */
static void read_build_id(struct space *space, struct module *module,
			  const Elf64_Phdr *header)
{
	size_t size = header->p_memsz < NOTES_MAX ? header->p_memsz : NOTES_MAX;
	unsigned char *notes = allocate(1, size + 1);
	size_t at = 0, name, contents;
	Elf64_Nhdr note;

	if (!space_read(space, module->bias + header->p_vaddr, notes, size))
		size = 0;
	while (at + sizeof(note) <= size) {
		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		contents = name + ((note.n_namesz + 3ull) & ~3ull);
		at = contents + ((note.n_descsz + 3ull) & ~3ull);
		if (at > size || contents > size || at < contents)
			break;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
		    memcmp(notes + name, "GNU", 4) ||
		    note.n_descsz > sizeof(module->build_id))
			continue;
		memcpy(module->build_id, notes + contents, note.n_descsz);
		module->object.build_id_size = note.n_descsz;
	}
	free(notes);
}

/* Copies the vdso to a file, because names are only looked up in files. */
static void save_vdso(struct space *space, struct module *module)
{
	size_t size = module->end - module->start;
	unsigned char *bytes;
	int fd;

	if (size > VDSO_SIZE)
		return;
	bytes = allocate(1, size);
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && space_read(space, module->start, bytes, size) &&
	    write(fd, bytes, size) == (ssize_t)size)
		module->object.path = keep_format("/proc/self/fd/%d", fd);
	free(bytes);
}

static void read_module(struct space *space, struct module *module)
{
	Elf64_Phdr headers[HEADERS_MAX];
	bool has_bias = false;
	Elf64_Ehdr elf;
	unsigned i;

	module->is_read = true;
	module->object.build_id = module->build_id;
	if (!space_read(space, module->start, &elf, sizeof(elf)) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) ||
	    elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf.e_phentsize != sizeof(*headers) || elf.e_phnum > HEADERS_MAX ||
	    !space_read(space, module->start + elf.e_phoff, headers,
			elf.e_phnum * sizeof(*headers)))
		return;
	for (i = 0; i < elf.e_phnum && !has_bias; i++)
		if (headers[i].p_type == PT_LOAD) {
			module->bias = module->start - (headers[i].p_vaddr &
							~(uint64_t)(PAGE - 1));
			has_bias = true;
		}
	for (i = 0; i < elf.e_phnum; i++) {
		if (headers[i].p_type == PT_GNU_EH_FRAME)
			module->unwind = module->bias + headers[i].p_vaddr;
		else if (headers[i].p_type == PT_NOTE &&
			 !module->object.build_id_size)
			read_build_id(space, module, &headers[i]);
	}
	if (!strcmp(module->object.path, VDSO))
		save_vdso(space, module);
}

struct module *space_module(struct space *space, uint64_t address)
{
	const struct mapping *mapping = space_mapping(space, address);
	struct module *module;

	if (!mapping || mapping->module == NONE)
		return NULL;
	module = &space->modules[mapping->module];
	if (!module->is_read)
		read_module(space, module);
	return module;
}
