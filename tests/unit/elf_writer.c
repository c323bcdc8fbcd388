/*
 * Writes small ELF files for the tests, with the sections that they ask for.
 */
#include "elf_writer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dwarf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One unit without attributes, or one that names its other part. */
static const unsigned char plain_info[] = {
	8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1
};
static const unsigned char skeleton_info[] = {
	17, 0, 0, 0, 5, 0, DW_UT_skeleton, 8, 0, 0, 0, 0, 1, 2, 3,
	4,  5, 6, 7, 8, 1
};
static const unsigned char split_info[] = {
	17, 0, 0, 0, 5, 0, DW_UT_split_compile, 8, 0, 0, 0, 0, 1, 2, 3,
	4,  5, 6, 7, 8, 1
};
static const unsigned char plain_abbrev[] = {
	1, DW_TAG_compile_unit, 0, 0, 0, 0
};
static const unsigned char skeleton_abbrev[] = {
	1, DW_TAG_skeleton_unit, 0, DW_AT_dwo_name, DW_FORM_string, 0, 0, 0,
};
const unsigned char elf_frames[ELF_FRAMES] = {
	20, 0, 0,    0, 0, 0, 0,  0, 1, 'z', 'R', 0, 1, 0x78, 16, 1,  3, 0x0c,
	7,  8, 0x90, 1, 0, 0, 20, 0, 0, 0,   28,  0, 0, 0,    0,  16, 0, 0,
	16, 0, 0,    0, 0, 0, 0,  0, 0, 0,   0,	  0, 0, 0,    0,  0,
};

static char section_names[512];
static size_t names_size;

static Elf_Data *add_section(Elf *elf, const char *name, uint32_t type,
			     const void *bytes, size_t size)
{
	Elf_Scn *section = elf_newscn(elf);
	Elf_Data *data = elf_newdata(section);
	GElf_Shdr header;

	cr_assert(data != NULL);
	data->d_buf = memcpy(malloc(size + 1), bytes, size);
	data->d_size = size;
	data->d_align = 4;
	data->d_type = ELF_T_BYTE;
	gelf_getshdr(section, &header);
	header.sh_type = type;
	header.sh_name = (uint32_t)names_size;
	strcpy(section_names + names_size, name);
	names_size += strlen(name) + 1;
	gelf_update_shdr(section, &header);
	return data;
}

static void add_id(Elf *elf, const struct contents *has)
{
	unsigned char note[16 + sizeof(has->id)] = {
		4, 0,	0,   0,	 (unsigned char)has->id_size, 0, 0, 0, 3, 0, 0,
		0, 'G', 'N', 'U'
	};

	memcpy(note + 16, has->id, has->id_size);
	add_section(elf, ".note.gnu.build-id", SHT_NOTE, note,
		    16 + (has->id_size + 3) / 4 * 4);
}

static void add_link(Elf *elf, const char *name, const void *end,
		     size_t end_size, const char *section, size_t align)
{
	unsigned char bytes[1024] = { 0 };
	size_t size = (strlen(name) + align) / align * align;

	strcpy((char *)bytes, name);
	memcpy(bytes + size, end, end_size);
	add_section(elf, section, SHT_PROGBITS, bytes, size + end_size);
}

static void add_unit(Elf *elf, const struct contents *has)
{
	unsigned char info[512];

	if (has->dwo) {
		add_section(elf, ".debug_info.dwo", SHT_PROGBITS, split_info,
			    sizeof(split_info));
		add_section(elf, ".debug_abbrev.dwo", SHT_PROGBITS,
			    plain_abbrev, sizeof(plain_abbrev));
	} else if (has->split) {
		size_t size = sizeof(skeleton_info) + strlen(has->split) + 1;

		memcpy(info, skeleton_info, sizeof(skeleton_info));
		strcpy((char *)info + sizeof(skeleton_info), has->split);
		info[0] = (unsigned char)(size - 4);
		add_section(elf, ".debug_info", SHT_PROGBITS, info, size);
		add_section(elf, ".debug_abbrev", SHT_PROGBITS, skeleton_abbrev,
			    sizeof(skeleton_abbrev));
	} else {
		add_section(elf, has->info,
			    has->is_empty ? SHT_NOBITS : SHT_PROGBITS,
			    plain_info, sizeof(plain_info));
		add_section(elf, ".debug_abbrev", SHT_PROGBITS, plain_abbrev,
			    sizeof(plain_abbrev));
	}
}

static void add_all(Elf *elf, const struct contents *has)
{
	static const Elf64_Sym symbols[2] = { { 0 }, { .st_value = 77 } };

	if (has->id_size)
		add_id(elf, has);
	if (has->info || has->split || has->dwo)
		add_unit(elf, has);
	if (has->link)
		add_link(elf, has->link, &has->checksum, 4, ".gnu_debuglink",
			 4);
	if (has->common)
		add_link(elf, has->common, has->id, has->id_size,
			 ".gnu_debugaltlink", 1);
	if (has->has_frames)
		add_section(elf, ".eh_frame", SHT_PROGBITS, elf_frames,
			    ELF_FRAMES);
	if (has->has_symbols)
		add_section(elf, ".symtab", SHT_SYMTAB, symbols,
			    sizeof(symbols))
			->d_type = ELF_T_SYM;
}

void elf_write(const char *path, const struct contents *has)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	Elf *elf = elf_begin(fd, ELF_C_WRITE, NULL);
	Elf64_Ehdr *header = elf64_newehdr(elf);
	static const char padding[200000];

	cr_assert(fd >= 0 && header != NULL, "%s", path);
	memset(section_names, 0, sizeof(section_names));
	names_size = 1;
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_type = ET_DYN;
	header->e_machine = EM_X86_64;
	header->e_version = EV_CURRENT;
	add_all(elf, has);
	if (has->padding)
		add_section(elf, ".padding", SHT_PROGBITS, padding,
			    has->padding);
	add_section(elf, ".shstrtab", SHT_STRTAB, "", 0)->d_size = 0;
	{
		Elf_Scn *last = elf_getscn(elf, 0), *next;

		while ((next = elf_nextscn(elf, last)))
			last = next;
		elf_getdata(last, NULL)->d_buf = section_names;
		elf_getdata(last, NULL)->d_size = names_size;
		header->e_shstrndx = (uint16_t)elf_ndxscn(last);
	}
	cr_assert(gt(long, elf_update(elf, ELF_C_WRITE), 0), "%s",
		  elf_errmsg(-1));
	elf_end(elf);
	close(fd);
}
