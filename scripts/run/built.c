/*
 * The file is mapped and every offset is checked.  A field whose sections are damaged
 * stays unset.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "built.h"

#define DEBUG_DIRECTORY "/usr/lib/debug"

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
		snprintf(built->missing, sizeof(built->missing), "%.*s",
			 (int)strnlen(piece.start, piece.size), piece.start);
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

static bool is_there(const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	return length < (int)sizeof(path) && access(path, R_OK) == 0;
}

/* ab/cd...; false without an id. */
static bool put_id(char *to, const struct marks *marks)
{
	for (size_t i = 0; i < marks->build_id_size; i++)
		to += sprintf(to, i == 1 ? "/%02x" : "%02x",
			      marks->build_id[i]);
	return marks->build_id_size > 1;
}

/* Looks where gdb does, and the report.  built->missing is what .gnu_debuglink names. */
static void look_for_separate(struct built *built, const struct marks *marks,
			      const char *path)
{
	char directory[PATH_MAX], id[2 + 2 * sizeof(marks->build_id)];
	char *link = built->missing;
	bool has_id = put_id(id, marks);

	if (!realpath(path, directory)) {
		*link = '\0';
		return;
	}
	*strrchr(directory, '/') = '\0';
	if ((has_id && is_there(DEBUG_DIRECTORY "/.build-id/%s.debug", id)) ||
	    (link[0] && (is_there("%s/%s", directory, link) ||
			 is_there("%s/.debug/%s", directory, link) ||
			 is_there(DEBUG_DIRECTORY "%s/%s", directory, link)))) {
		built->has_symbols = built->has_debug = true;
		*link = '\0';
	}
	/* Distributions name it by the id. */
	if (has_id && strncmp(link, id + 3, strlen(id + 3)) == 0)
		sprintf(link, DEBUG_DIRECTORY "/.build-id/%s.debug", id);
	for (; *link; link++)
		if ((unsigned char)*link < ' ')
			*link = '?';
}

void built_read(struct built *built, const char *path,
		const struct marks *marks)
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
			if (built->has_debug)
				built->missing[0] = '\0';
			else
				look_for_separate(built, marks, path);
			munmap(memory, st.st_size);
		}
	}
	close(fd);
}
