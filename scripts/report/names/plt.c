/*
 * Finds names of linkage table entries.  A function's address may be that of an
 * entry that jumps to it: for functions chosen at the start (target_clones,
 * ifunc), and for a library's functions in a program that is not
 * position-independent.  Such an entry has no symbol; but the GOT slot through
 * which it jumps has a relocation, which names the function or its resolver.
 */
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "names/plt.h"

/* The size of the longest entry of the processors known here. */
#define ENTRY_SIZE 16

static uint64_t read_number(const unsigned char *at, unsigned size)
{
	uint64_t value = 0;

	while (size-- > 0)
		value = value << 8 | at[size];
	return value;
}

/* [endbr64] [bnd] jmp *slot(%rip) */
static bool read_x86_64(const unsigned char *code, uint64_t address,
			uint64_t *slot)
{
	unsigned at = 0;

	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		at = 4;
	at += code[at] == 0xf2;
	if (code[at] != 0xff || code[at + 1] != 0x25)
		return false;
	*slot = address + at + 6 +
		(uint64_t)(int64_t)(int32_t)read_number(code + at + 2, 4);
	return true;
}

/* [bti c] adrp x16, page; ldr x17, [x16, offset] */
static bool read_aarch64(const unsigned char *code, uint64_t address,
			 uint64_t *slot)
{
	uint32_t adrp = (uint32_t)read_number(code, 4), load;
	int64_t pages;

	if (adrp == 0xd503245f) {
		code += 4;
		address += 4;
		adrp = (uint32_t)read_number(code, 4);
	}
	load = (uint32_t)read_number(code + 4, 4);
	if ((adrp & 0x9f00001f) != 0x90000010 ||
	    (load & 0xffc003ff) != 0xf9400211)
		return false;
	pages = (int64_t)((uint64_t)(adrp >> 5 & 0x7ffff) << 45) >> 43;
	pages |= adrp >> 29 & 3;
	*slot = (address & ~0xfffull) + (uint64_t)(pages * 4096) +
		(load >> 10 & 0xfff) * 8;
	return true;
}

static bool is_chosen_at_start(unsigned machine, uint64_t type)
{
	return machine == EM_X86_64 ? type == R_X86_64_IRELATIVE :
				      type == R_AARCH64_IRELATIVE;
}

static bool is_name(unsigned machine, uint64_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}

/* Reads the code at @address in the file. */
static bool read_code(Elf *elf, uint64_t address, unsigned char *code)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf_Data *data;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) ||
		    !(header.sh_flags & SHF_EXECINSTR) ||
		    header.sh_type != SHT_PROGBITS ||
		    address - header.sh_addr >= header.sh_size)
			continue;
		data = elf_rawdata(section, NULL);
		address -= header.sh_addr;
		if (!data || !data->d_buf || address >= data->d_size)
			return false;
		memset(code, 0, ENTRY_SIZE);
		memcpy(code, (const char *)data->d_buf + address,
		       data->d_size - address < ENTRY_SIZE ?
			       data->d_size - address :
			       ENTRY_SIZE);
		return true;
	}
	return false;
}

bool plt_slot(Elf *elf, uint64_t address, uint64_t *slot)
{
	unsigned char code[ENTRY_SIZE];
	GElf_Ehdr header;

	if (!gelf_getehdr(elf, &header) || !read_code(elf, address, code))
		return false;
	switch (header.e_machine) {
	case EM_X86_64: return read_x86_64(code, address, slot);
	case EM_AARCH64: return read_aarch64(code, address, slot);
	}
	return false;
}

static int compare_entries(const void *left, const void *right)
{
	const struct plt_entry *a = left, *b = right;

	return a->slot < b->slot ? -1 : a->slot > b->slot;
}

/* The name of symbol @number in the table to which @section's relocations
 * refer. */
static const char *name_of(Elf *elf, const GElf_Shdr *section, size_t number)
{
	Elf_Scn *table = elf_getscn(elf, section->sh_link);
	GElf_Shdr header;
	GElf_Sym symbol;
	Elf_Data *data;

	if (number > INT32_MAX || !table || !gelf_getshdr(table, &header) ||
	    !(data = elf_getdata(table, NULL)) ||
	    !gelf_getsym(data, (int)number, &symbol))
		return NULL;
	return elf_strptr(elf, header.sh_link, symbol.st_name);
}

/* What is searched for: the names of @entries, or the slots of wanted names. */
struct search {
	Elf *elf;
	unsigned machine;
	struct plt_entry *entries;
	size_t count;
	bool (*is_wanted)(const char *name);
	uint64_t *slots;
	uint32_t slot_count, most;
};

static void name_entry(struct search *search, const GElf_Shdr *section,
		       const GElf_Rela *rela)
{
	const struct plt_entry key = { .slot = rela->r_offset };
	struct plt_entry *entry = bsearch(&key, search->entries, search->count,
					  sizeof(key), compare_entries);
	uint64_t type = GELF_R_TYPE(rela->r_info);

	if (!entry)
		return;
	if (is_chosen_at_start(search->machine, type))
		entry->chooser = (uint64_t)rela->r_addend;
	else if (is_name(search->machine, type))
		entry->name = name_of(search->elf, section,
				      GELF_R_SYM(rela->r_info));
}

static void take_slot(struct search *search, const GElf_Shdr *section,
		      const GElf_Rela *rela)
{
	const char *name;

	if (search->slot_count == search->most ||
	    !is_name(search->machine, GELF_R_TYPE(rela->r_info)))
		return;
	name = name_of(search->elf, section, GELF_R_SYM(rela->r_info));
	if (name && search->is_wanted(name))
		search->slots[search->slot_count++] = rela->r_offset;
}

static unsigned machine_of(Elf *elf)
{
	GElf_Ehdr header;

	return gelf_getehdr(elf, &header) ? header.e_machine : EM_NONE;
}

static void read_relocations(struct search *search,
			     void (*take)(struct search *search,
					  const GElf_Shdr *section,
					  const GElf_Rela *rela))
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Rela rela;
	Elf_Data *data;
	int i;

	search->machine = machine_of(search->elf);
	while ((section = elf_nextscn(search->elf, section))) {
		if (!gelf_getshdr(section, &header) ||
		    header.sh_type != SHT_RELA ||
		    !(header.sh_flags & SHF_ALLOC) ||
		    !(data = elf_getdata(section, NULL)))
			continue;
		for (i = 0; gelf_getrela(data, i, &rela); i++)
			take(search, &header, &rela);
	}
}

uint32_t plt_slots(Elf *elf, bool (*is_wanted)(const char *name),
		   uint64_t *slots, uint32_t most)
{
	struct search search = {
		.elf = elf, .is_wanted = is_wanted, .slots = slots, .most = most
	};

	read_relocations(&search, take_slot);
	return search.slot_count;
}

void plt_resolve(Elf *elf, struct plt_entry *entries, size_t count)
{
	struct search search = { .elf = elf,
				 .entries = entries,
				 .count = count };

	qsort(entries, count, sizeof(*entries), compare_entries);
	read_relocations(&search, name_entry);
}
