/*
 * Reads the section headers of a file, and of the sections only XRay's list: 32 bytes for
 * each sled, of which the 17th is its kind.
 */

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/marks.h"

#define SLED_SIZE 32
#define SLED_KIND 16

enum { ENTRY, EXIT, TAIL_CALL, ENTRY_WITH_ARGUMENTS };

struct piece {
	const char *start;
	size_t size;
};

static bool get_piece(struct piece file, uint64_t offset, uint64_t size,
		      struct piece *piece)
{
	if (offset > file.size || size > file.size - offset)
		return false;
	*piece = (struct piece){ file.start + offset, size };
	return true;
}

static void count_sleds(struct marks *marks, struct piece list)
{
	for (size_t at = 0; at + SLED_SIZE <= list.size; at += SLED_SIZE) {
		int kind = list.start[at + SLED_KIND];

		marks->functions += kind == ENTRY ||
				    kind == ENTRY_WITH_ARGUMENTS;
		marks->sleds += kind <= ENTRY_WITH_ARGUMENTS;
	}
}

/* The section is one note of the owner "GNU". */
static void copy_build_id(struct marks *marks, struct piece note)
{
	const size_t head = sizeof(Elf64_Nhdr) + 4;

	if (note.size <= head || note.size - head > sizeof(marks->build_id))
		return;
	marks->build_id_size = note.size - head;
	memcpy(marks->build_id, note.start + head, marks->build_id_size);
}

/* Whether the file refers to @name, which libc defines. */
static bool has_undefined(struct piece symbols, struct piece names,
			  const char *name)
{
	size_t size = strlen(name) + 1;
	Elf64_Sym symbol;

	for (size_t at = 0; at + sizeof(symbol) <= symbols.size;
	     at += sizeof(symbol)) {
		memcpy(&symbol, symbols.start + at, sizeof(symbol));
		if (symbol.st_shndx == SHN_UNDEF &&
		    symbol.st_name < names.size &&
		    names.size - symbol.st_name >= size &&
		    memcmp(names.start + symbol.st_name, name, size) == 0)
			return true;
	}
	return false;
}

struct dynamic {
	struct piece symbols, names;
};

static void look_at(struct marks *marks, struct dynamic *dynamic,
		    const char *name, struct piece piece)
{
	if (strcmp(name, ".dynstr") == 0)
		dynamic->names = piece;
	else if (strcmp(name, ".dynsym") == 0)
		dynamic->symbols = piece;
	else if (strcmp(name, "xray_instr_map") == 0)
		count_sleds(marks, piece);
	else if (strcmp(name, "__patchable_function_entries") == 0 ||
		 strcmp(name, "__mcount_loc") == 0)
		marks->entries += (uint32_t)(piece.size / sizeof(uint64_t));
	else if (strcmp(name, ".note.gnu.build-id") == 0)
		copy_build_id(marks, piece);
}

static bool read_sections(struct marks *marks, struct piece file)
{
	Elf64_Ehdr header;
	Elf64_Shdr section;
	struct piece table, names, piece;
	struct dynamic dynamic = { { NULL, 0 }, { NULL, 0 } };

	if (file.size < sizeof(header))
		return false;
	memcpy(&header, file.start, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_shentsize != sizeof(section) ||
	    header.e_shstrndx >= header.e_shnum ||
	    !get_piece(file, header.e_shoff,
		       header.e_shnum * (uint64_t)sizeof(section), &table))
		return false;
	marks->is_usable = header.e_machine == EM_X86_64;
	memcpy(&section, table.start + header.e_shstrndx * sizeof(section),
	       sizeof(section));
	if (!get_piece(file, section.sh_offset, section.sh_size, &names) ||
	    names.size == 0 || names.start[names.size - 1] != '\0')
		return false;
	for (unsigned int i = 0; i < header.e_shnum; i++) {
		memcpy(&section, table.start + i * sizeof(section),
		       sizeof(section));
		if (section.sh_name < names.size &&
		    section.sh_type != SHT_NOBITS &&
		    get_piece(file, section.sh_offset, section.sh_size, &piece))
			look_at(marks, &dynamic, names.start + section.sh_name,
				piece);
	}
	marks->calls_hooks = has_undefined(dynamic.symbols, dynamic.names,
					   "__cyg_profile_func_enter");
	marks->calls_mcount =
		has_undefined(dynamic.symbols, dynamic.names, "mcount") ||
		has_undefined(dynamic.symbols, dynamic.names, "_mcount") ||
		has_undefined(dynamic.symbols, dynamic.names, "__fentry__");
	return true;
}

void marks_read(struct marks *marks, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	void *memory;

	memset(marks, 0, sizeof(*marks));
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		memory = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE,
			      fd, 0);
		if (memory != MAP_FAILED) {
			marks->is_known = read_sections(
				marks,
				(struct piece){ memory, (size_t)st.st_size });
			munmap(memory, (size_t)st.st_size);
		}
	}
	close(fd);
}

bool marks_read_same(struct marks *marks, const char *path,
		     const unsigned char *build_id, size_t size)
{
	marks_read(marks, path);
	return marks->is_known && marks->build_id_size == size &&
	       memcmp(marks->build_id, build_id, size) == 0;
}

bool marks_any(const struct marks *marks)
{
	return marks->calls_hooks ||
	       (marks->is_usable &&
		(marks->functions > 0 || marks->entries > 0 ||
		 marks->calls_mcount));
}

const char *marks_text(const struct marks *marks, char *text, size_t size)
{
	size_t length = 0;

	text[0] = '\0';
	if (marks->calls_hooks)
		length = (size_t)snprintf(text, size,
					  "-finstrument-functions%s",
					  marks->functions ? ", " : "");
	if (marks->functions && length < size)
		length += (size_t)snprintf(text + length, size - length,
					   "XRay: %u functions, %u sleds",
					   marks->functions, marks->sleds);
	if (marks->entries && length < size)
		length += (size_t)snprintf(
			text + length, size - length,
			"%s%u entries with no-ops or __fentry__",
			length > 0 ? ", " : "", marks->entries);
	if (marks->calls_mcount && length < size)
		snprintf(text + length, size - length, "%s-pg",
			 length > 0 ? ", " : "");
	return text;
}
