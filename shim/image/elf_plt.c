/*
 * Finds the PLT entries of ifuncs.  A relocation of type IRELATIVE names the resolver
 * and the GOT slot; the entry is the code that jumps through this slot.  The entry's
 * address is the function's address, for which the symbol table has no name.
 */
#include "image/elf_plt.h"

#include "arch.h"
#include "image/elf_file.h"
#include "os/sys.h"
#include "os/text.h"

#include <stdbool.h>

#include <shim/banned.h>

/* Larger than in any real file. */
#define ENTRIES_MAX 65536

/* Entries begin at multiples of this size. */
#define ENTRY_ALIGN 8

struct work {
	const struct elf_file *file;
	const char *names; /* of sections */
	size_t names_size;
	struct elf_plt_entry *entries;
	uint32_t count, room;
};

/* ".plt", ".plt.sec", ".plt.got", ".iplt" */
static bool is_linkage_table(const struct work *work, const Elf64_Shdr *section)
{
	const char *name = work->names + section->sh_name;

	return section->sh_name < work->names_size &&
	       (text_after(name, ".plt") || text_equal(name, ".iplt"));
}

/* Calls each(work, section, contents, size) for all relocations, or all PLTs. */
static int each_section(struct work *work, uint32_t type,
			void (*each)(struct work *work,
				     const Elf64_Shdr *section,
				     const void *memory, size_t size))
{
	for (uint32_t i = 0; i < work->file->section_count; i++) {
		const Elf64_Shdr *section = &work->file->sections[i];
		void *memory;
		size_t size;
		int r;

		if (section->sh_type != type ||
		    !(section->sh_flags & SHF_ALLOC) ||
		    (type == SHT_PROGBITS && !is_linkage_table(work, section)))
			continue;
		r = elf_load_section(work->file, i, &memory, &size);
		if (r < 0)
			return r;
		each(work, section, memory, size);
		sys_unmap(memory, size + 1);
	}
	return 0;
}

static void read_relocations(struct work *work, const Elf64_Shdr *section,
			     const void *memory, size_t size)
{
	const Elf64_Rela *rela = memory;

	(void)section;
	for (size_t i = 0; i < size / sizeof(*rela); i++) {
		if (ELF64_R_TYPE(rela[i].r_info) != ARCH_RELOC_IRELATIVE)
			continue;
		if (work->entries && work->count < work->room)
			work->entries[work->count] = (struct elf_plt_entry){
				.slot = rela[i].r_offset,
				.resolver = (uint64_t)rela[i].r_addend,
			};
		work->count++;
	}
}

/* A Shell sort, which is fast because most entries are in order already. */
static void sort_entries(const struct work *work)
{
	for (uint32_t gap = work->count / 2; gap > 0; gap /= 2)
		for (uint32_t i = gap; i < work->count; i++) {
			struct elf_plt_entry entry = work->entries[i];
			uint32_t at = i;

			for (; at >= gap &&
			       work->entries[at - gap].slot > entry.slot;
			     at -= gap)
				work->entries[at] = work->entries[at - gap];
			work->entries[at] = entry;
		}
}

static struct elf_plt_entry *find_entry(const struct work *work, uint64_t slot)
{
	uint32_t low = 0, high = work->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (work->entries[middle].slot < slot)
			low = middle + 1;
		else
			high = middle;
	}
	return low < work->count && work->entries[low].slot == slot ?
		       &work->entries[low] :
		       NULL;
}

static void find_entries_in_code(struct work *work, const Elf64_Shdr *section,
				 const void *memory, size_t size)
{
	const unsigned char *code = memory;

	for (size_t at = 0; at + ARCH_PLT_SIZE <= size; at += ENTRY_ALIGN) {
		struct elf_plt_entry *entry;
		uintptr_t slot;

		if (!arch_plt_slot(code + at, section->sh_addr + at, &slot))
			continue;
		entry = find_entry(work, slot);
		if (entry && entry->address == 0)
			entry->address = section->sh_addr + at;
	}
}

static int read_tables(struct work *work)
{
	void *memory;
	int r = elf_load_section(work->file, work->file->names, &memory,
				 &work->names_size);

	if (r < 0)
		return r;
	work->names = memory;
	r = each_section(work, SHT_PROGBITS, find_entries_in_code);
	sys_unmap(memory, work->names_size + 1);
	return r;
}

int elf_plt_read(const struct elf_file *file, struct elf_plt_entry **entries,
		 uint32_t *count, size_t *size)
{
	struct work work = { .file = file };
	void *memory;
	int r;

	*entries = NULL;
	*count = 0;
	r = each_section(&work, SHT_RELA, read_relocations);
	if (r < 0 || work.count == 0)
		return r;
	work.room = work.count < ENTRIES_MAX ? work.count : ENTRIES_MAX;
	*size = work.room * sizeof(*work.entries);
	r = sys_map(*size, &memory);
	if (r < 0)
		return r;
	work.entries = memory;
	work.count = 0;
	r = each_section(&work, SHT_RELA, read_relocations);
	if (work.count > work.room)
		work.count = work.room;
	sort_entries(&work);
	if (r == 0)
		r = read_tables(&work);
	if (r < 0) {
		sys_unmap(memory, *size);
		return r;
	}
	*entries = work.entries;
	*count = work.count;
	return 0;
}
