/*
 * The file is mapped and every offset is checked.  A field whose sections are damaged
 * stays unset.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "built.h"

struct file {
	const char *start;
	size_t size;
};

struct piece {
	const char *start;
	size_t size;
};

static bool get_piece(const struct file *file, uint64_t offset, uint64_t size,
		      struct piece *piece)
{
	if (offset > file->size || size > file->size - offset)
		return false;
	*piece = (struct piece){ file->start + offset, size };
	return true;
}

static bool contains(struct piece piece, const char *text)
{
	return memmem(piece.start, piece.size, text, strlen(text)) != NULL;
}

/* Not in the elf.h of older libraries. */
#define COMPRESSED_WITH_ZSTD 2

/* @piece is a compressed section. */
static bool is_zstd(struct piece piece)
{
	uint32_t kind = 0;

	if (piece.size >= sizeof(kind))
		memcpy(&kind, piece.start, sizeof(kind));
	return kind == COMPRESSED_WITH_ZSTD;
}

/* Notes what section @name shows. */
static void look_at(struct built *built, const char *name, struct piece piece)
{
	if (strcmp(name, ".symtab") == 0)
		built->has_symbols = true;
	else if (strcmp(name, ".debug_info") == 0)
		built->has_debug = true;
	else if (strcmp(name, ".gnu_debuglink") == 0)
		built->has_symbols = built->has_debug = true;
	else if (strcmp(name, ".dynstr") == 0)
		built->is_cxx = contains(piece, "libstdc++.so") ||
				contains(piece, "libc++.so");
	else if (strcmp(name, ".comment") == 0)
		built->is_clang = contains(piece, "clang version");
	else if (strcmp(name, ".debug_str") == 0 ||
		 strcmp(name, ".debug_line_str") == 0)
		built->has_exclusions |= contains(
			piece, "-finstrument-functions-exclude-file-"
			       "list=");
}

static bool read_sections(struct built *built, const struct file *file)
{
	const ElfW(Ehdr) *header = (const void *)file->start;
	const ElfW(Shdr) * table;
	struct piece all, names, piece;

	if (file->size < sizeof(*header) ||
	    memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_shentsize != sizeof(*table) ||
	    header->e_shoff % _Alignof(ElfW(Shdr)) != 0 ||
	    !get_piece(file, header->e_shoff,
		       header->e_shnum * (uint64_t)sizeof(*table), &all) ||
	    header->e_shstrndx >= header->e_shnum)
		return false;
	table = (const void *)all.start;
	if (!get_piece(file, table[header->e_shstrndx].sh_offset,
		       table[header->e_shstrndx].sh_size, &names) ||
	    names.size == 0 || names.start[names.size - 1] != '\0')
		return false;
	for (int i = 0; i < header->e_shnum; i++)
		if (table[i].sh_name < names.size &&
		    table[i].sh_type != SHT_NOBITS &&
		    get_piece(file, table[i].sh_offset, table[i].sh_size,
			      &piece)) {
			look_at(built, names.start + table[i].sh_name, piece);
			built->has_zstd |= table[i].sh_flags & SHF_COMPRESSED &&
					   is_zstd(piece);
		}
	return true;
}

void built_read(struct built *built, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct file file;
	struct stat st;
	void *memory;

	memset(built, 0, sizeof(*built));
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		memory = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (memory != MAP_FAILED) {
			file = (struct file){ memory, st.st_size };
			built->is_known = read_sections(built, &file);
			munmap(memory, st.st_size);
		}
	}
	close(fd);
}
