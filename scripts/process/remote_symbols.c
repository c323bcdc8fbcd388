/*
 * Reads the dynamic symbols of an ELF file from the memory of a process: its file may be
 * gone, or be in another mount namespace.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "process/remote_symbols.h"

#define SYMBOLS_MAX (1u << 20)
#define STRINGS_MAX (16u << 20)
#define CODE_MAX    (256u << 20)

/* The tables of a file. */
struct tables {
	struct tables *next;
	uint64_t start, bias, entry;
	Elf64_Sym *symbols; /* NULL: it has none */
	char *strings;
	size_t count, strings_size;
};

/* Of all files that were asked for, so that a thread need not wait for them. */
static struct tables *all_tables;

static uint64_t relocate(uint64_t bias, uint64_t address)
{
	return address < bias ? address + bias : address;
}

/* The number of symbols: the chains of the hash table end with the last symbol. */
static size_t count_symbols(const struct remote *remote, uint64_t hash)
{
	uint32_t head[4], bucket, last = 0, chain, i;
	uint64_t buckets;

	if (!remote_read(remote, hash, head, sizeof(head)))
		return 0;
	buckets = hash + sizeof(head) + (uint64_t)head[2] * 8;
	for (i = 0; i < head[0] && i < SYMBOLS_MAX; i++) {
		if (!remote_read(remote, buckets + (uint64_t)i * 4, &bucket, 4))
			return 0;
		last = bucket > last ? bucket : last;
	}
	if (last < head[1])
		return head[1];
	do
		if (!remote_read(
			    remote,
			    buckets + 4 * ((uint64_t)head[0] + last - head[1]),
			    &chain, 4))
			return 0;
	while (last++ < SYMBOLS_MAX && !(chain & 1));
	return last;
}

static bool read_dynamic(const struct remote *remote, struct tables *tables,
			 uint64_t dynamic)
{
	uint64_t symbols = 0, strings = 0, hash = 0, size = 0;
	Elf64_Dyn entry;

	do {
		if (!remote_read(remote, dynamic, &entry, sizeof(entry)))
			return false;
		dynamic += sizeof(entry);
		switch (entry.d_tag) {
		case DT_SYMTAB: symbols = entry.d_un.d_ptr; break;
		case DT_STRTAB: strings = entry.d_un.d_ptr; break;
		case DT_STRSZ: size = entry.d_un.d_val; break;
		case DT_GNU_HASH: hash = entry.d_un.d_ptr; break;
		}
	} while (entry.d_tag != DT_NULL);
	if (!symbols || !strings || !hash || !size || size > STRINGS_MAX)
		return false;
	tables->count = count_symbols(remote, relocate(tables->bias, hash));
	if (tables->count == 0 || tables->count > SYMBOLS_MAX)
		return false;
	tables->symbols = allocate(tables->count, sizeof(*tables->symbols));
	tables->strings = allocate(1, size + 1);
	tables->strings_size = size;
	return remote_read(remote, relocate(tables->bias, symbols),
			   tables->symbols,
			   tables->count * sizeof(*tables->symbols)) &&
	       remote_read(remote, relocate(tables->bias, strings),
			   tables->strings, size);
}

static void read_tables(const struct remote *remote, struct tables *tables)
{
	bool has_bias = false;
	uint64_t start = tables->start, dynamic = 0;
	Elf64_Ehdr elf;
	Elf64_Phdr part;
	unsigned i;

	if (!remote_read(remote, start, &elf, sizeof(elf)) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) ||
	    elf.e_phentsize != sizeof(part))
		return;
	for (i = 0; i < elf.e_phnum; i++) {
		if (!remote_read(remote, start + elf.e_phoff + i * sizeof(part),
				 &part, sizeof(part)))
			return;
		if (part.p_type == PT_LOAD && !has_bias) {
			tables->bias = start - (part.p_vaddr & ~(uint64_t)4095);
			has_bias = true;
		}
		if (part.p_type == PT_DYNAMIC)
			dynamic = part.p_vaddr;
	}
	tables->entry = elf.e_entry + tables->bias;
	if (dynamic && read_dynamic(remote, tables, dynamic + tables->bias))
		return;
	free(tables->symbols);
	tables->symbols = NULL;
	tables->count = 0;
}

static const struct tables *find_tables(const struct remote *remote,
					uint64_t start)
{
	struct tables *tables;

	for (tables = all_tables; tables; tables = tables->next)
		if (tables->start == start)
			return tables;
	tables = allocate(1, sizeof(*tables));
	tables->start = start;
	tables->next = all_tables;
	all_tables = tables;
	read_tables(remote, tables);
	return tables;
}

void remote_symbols_forget(void)
{
	while (all_tables) {
		struct tables *next = all_tables->next;

		free(all_tables->symbols);
		free(all_tables->strings);
		free(all_tables);
		all_tables = next;
	}
}

static const char *name_of(const struct tables *tables, const Elf64_Sym *symbol)
{
	return symbol->st_name < tables->strings_size ?
		       tables->strings + symbol->st_name :
		       "";
}

uint64_t remote_symbol(const struct remote *remote, uint64_t start,
		       const char *name)
{
	const struct tables *tables = find_tables(remote, start);
	size_t i;

	for (i = 0; i < tables->count; i++) {
		const Elf64_Sym *symbol = &tables->symbols[i];

		if (symbol->st_shndx != SHN_UNDEF &&
		    ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC &&
		    !strcmp(name_of(tables, symbol), name))
			return symbol->st_value + tables->bias;
	}
	return 0;
}

bool remote_function(const struct remote *remote, uint64_t start,
		     uint64_t address, char name[64])
{
	const struct tables *tables = find_tables(remote, start);
	size_t i;

	for (i = 0; i < tables->count; i++) {
		const Elf64_Sym *symbol = &tables->symbols[i];

		if (symbol->st_shndx == SHN_UNDEF ||
		    ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
		    address - (symbol->st_value + tables->bias) >=
			    symbol->st_size)
			continue;
		strncpy(name, name_of(tables, symbol), 63);
		name[63] = '\0';
		return true;
	}
	return false;
}

uint64_t remote_entry(const struct remote *remote, uint64_t start)
{
	return find_tables(remote, start)->entry;
}

/* The first executable segment of the file at @start; false: it has none. */
static bool find_code(const struct remote *remote, uint64_t start,
		      uint64_t *code, size_t *size)
{
	uint64_t bias = find_tables(remote, start)->bias;
	Elf64_Ehdr elf;
	Elf64_Phdr part;
	unsigned i;

	if (!remote_read(remote, start, &elf, sizeof(elf)))
		return false;
	for (i = 0; i < elf.e_phnum; i++) {
		if (!remote_read(remote, start + elf.e_phoff + i * sizeof(part),
				 &part, sizeof(part)))
			return false;
		if (part.p_type != PT_LOAD || !(part.p_flags & PF_X))
			continue;
		*code = part.p_vaddr + bias;
		*size = part.p_filesz;
		return *size <= CODE_MAX;
	}
	return false;
}

uint64_t remote_code(const struct remote *remote, uint64_t start,
		     const void *code, size_t size)
{
	unsigned char *bytes, *found = NULL;
	uint64_t address = 0, at;
	size_t room;

	if (!find_code(remote, start, &at, &room))
		return 0;
	bytes = allocate(1, room);
	if (remote_read(remote, at, bytes, room))
		found = memmem(bytes, room, code, size);
	if (found)
		address = at + (uint64_t)(found - bytes);
	free(bytes);
	return address;
}
