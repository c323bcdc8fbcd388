/*
 * Reads the dynamic section of an image, and from there relocations, symbols and versions.
 */
#include "image/imports.h"

#include "arch.h"
#include "os/pages.h"
#include "runtime/state.h"

#include <elf.h>
#include <errno.h>

#include <shim/banned.h>

#define NAME_SIZE    1024
#define VERSION_SIZE 256
#define NEEDED_MAX   1024 /* objects, and versions of each */

struct tables {
	const struct imports_image *image;
	uintptr_t symbols, strings, versions, needed;
	/* Relocations of the PLT, and the others. */
	uintptr_t relocations[2];
	size_t sizes[2];
};

static int read_memory(const struct tables *tables, uintptr_t from, void *to,
		       size_t size)
{
	if (tables->image->may_go)
		return pages_read((const void *)from, to, size);
	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return 0;
}

static bool read_text(const struct tables *tables, uintptr_t from, char *to,
		      size_t size)
{
	if (tables->image->may_go)
		return pages_read_text((const char *)from, to, size);
	for (size_t i = 0; i < size; i++) {
		to[i] = ((const char *)from)[i];
		if (to[i] == '\0')
			return true;
	}
	return false;
}

/* --- the dynamic section --- */

/* The loader may have relocated the address already. */
static uintptr_t relocate(const struct imports_image *image, uintptr_t address)
{
	return address < image->bias ? address + image->bias : address;
}

static void read_entry(struct tables *tables, const Elf64_Dyn *entry)
{
	uintptr_t address = relocate(tables->image, entry->d_un.d_ptr);

	switch (entry->d_tag) {
	case DT_SYMTAB: tables->symbols = address; break;
	case DT_STRTAB: tables->strings = address; break;
	case DT_VERSYM: tables->versions = address; break;
	case DT_VERNEED: tables->needed = address; break;
	case DT_JMPREL: tables->relocations[0] = address; break;
	case DT_PLTRELSZ: tables->sizes[0] = entry->d_un.d_val; break;
	case DT_RELA: tables->relocations[1] = address; break;
	case DT_RELASZ: tables->sizes[1] = entry->d_un.d_val; break;
	}
}

static int read_dynamic(struct tables *tables)
{
	const struct imports_image *image = tables->image;
	Elf64_Dyn entry = { .d_tag = DT_DEBUG };

	for (size_t at = 0;
	     at + sizeof(entry) <= image->dynamic_size && entry.d_tag;
	     at += sizeof(entry)) {
		int r = read_memory(tables, image->dynamic + at, &entry,
				    sizeof(entry));

		if (r < 0)
			return r;
		read_entry(tables, &entry);
	}
	return 0;
}

/* --- versions --- */

/* The name of the version @number in one object's list; 0: it is another object's. */
static uintptr_t find_in_list(const struct tables *tables, uintptr_t at,
			      unsigned number)
{
	Elf64_Vernaux version;

	for (unsigned i = 0; i < NEEDED_MAX; i++) {
		if (read_memory(tables, at, &version, sizeof(version)) < 0)
			break;
		if ((version.vna_other & 0x7fff) == number)
			return tables->strings + version.vna_name;
		if (version.vna_next == 0)
			break;
		at += version.vna_next;
	}
	return 0;
}

static const char *find_version(const struct tables *tables, size_t symbol,
				char text[VERSION_SIZE])
{
	uintptr_t at = tables->needed, found = 0;
	Elf64_Verneed needed = { .vn_next = 1 };
	uint16_t number;

	if (!tables->versions || !tables->needed ||
	    read_memory(tables, tables->versions + symbol * sizeof(number),
			&number, sizeof(number)) < 0 ||
	    (number & 0x7fff) < 2)
		return NULL;
	for (unsigned i = 0; i < NEEDED_MAX && !found && needed.vn_next; i++) {
		if (read_memory(tables, at, &needed, sizeof(needed)) < 0)
			break;
		found = find_in_list(tables, at + needed.vn_aux,
				     number & 0x7fff);
		at += needed.vn_next;
	}
	return found && read_text(tables, found, text, VERSION_SIZE) ? text :
								       NULL;
}

/* --- relocations --- */

static bool is_wanted(const Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	return symbol->st_shndx == SHN_UNDEF && symbol->st_name != 0 &&
	       (type == STT_FUNC || type == STT_NOTYPE);
}

static int read_relocations(const struct tables *tables, unsigned which,
			    void (*take)(void *argument,
					 const struct import *import),
			    void *argument)
{
	static char name[NAME_SIZE], version[VERSION_SIZE];
	static Elf64_Rela part[64];
	size_t left = tables->sizes[which] / sizeof(*part), have = 0;
	uintptr_t next = tables->relocations[which];

	for (size_t i = 0; left > 0; left--, i++, have--) {
		struct import import = { .name = name };
		size_t number;
		Elf64_Sym symbol;
		uint64_t type;
		int r = 0;

		if (have == 0) {
			have = left < 64 ? left : 64;
			i = 0;
			r = read_memory(tables, next, part,
					have * sizeof(*part));
			next += have * sizeof(*part);
		}
		if (r < 0)
			return r;
		type = ELF64_R_TYPE(part[i].r_info);
		number = ELF64_R_SYM(part[i].r_info);
		if (type != ARCH_RELOC_JUMP_SLOT && type != ARCH_RELOC_GLOB_DAT)
			continue;
		r = read_memory(tables,
				tables->symbols + number * sizeof(symbol),
				&symbol, sizeof(symbol));
		if (r < 0)
			return r;
		if (!is_wanted(&symbol) ||
		    !read_text(tables, tables->strings + symbol.st_name, name,
			       NAME_SIZE))
			continue;
		import.version = find_version(tables, number, version);
		import.slot = tables->image->bias + part[i].r_offset;
		import.is_call = type == ARCH_RELOC_JUMP_SLOT;
		take(argument, &import);
	}
	return 0;
}

int imports_read(const struct imports_image *image,
		 void (*take)(void *argument, const struct import *import),
		 void *argument)
{
	struct tables tables = { .image = image };
	int r;

	ASSERT_LOCKED();
	if (!image->dynamic)
		return 0;
	pages_begin(0);
	r = read_dynamic(&tables);
	for (unsigned which = 0; which < 2 && r == 0; which++)
		if (tables.symbols && tables.strings &&
		    tables.relocations[which])
			r = read_relocations(&tables, which, take, argument);
	pages_drop();
	return r;
}
