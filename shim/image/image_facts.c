/*
 * Reads the program headers of an image from its memory, because another file may have
 * replaced the image's file.
 */
#include "image/image_facts.h"

#include "os/sys.h"

#include <elf.h>

#include <shim/banned.h>

static void read_build_id(uintptr_t at, uint64_t size,
			  struct image_facts *facts)
{
	Elf64_Nhdr note;
	char name[4];

	while (size >= sizeof(note) && facts->build_id_size == 0) {
		uint64_t whole;

		if (sys_peek((const void *)at, &note, sizeof(note)) < 0)
			return;
		whole = sizeof(note) + ((note.n_namesz + 3ull) & ~3ull) +
			((note.n_descsz + 3ull) & ~3ull);
		if (whole > size)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    note.n_descsz <= sizeof(facts->build_id) &&
		    sys_peek((const void *)(at + sizeof(note)), name, 4) == 0 &&
		    name[0] == 'G' && name[1] == 'N' && name[2] == 'U' &&
		    sys_peek((const void *)(at + sizeof(note) + 4),
			     facts->build_id, note.n_descsz) == 0)
			facts->build_id_size = note.n_descsz;
		at += whole;
		size -= whole;
	}
}

bool image_read_facts(uintptr_t start, struct image_facts *facts)
{
	Elf64_Ehdr elf;
	Elf64_Phdr program;
	bool have_bias = false;

	*facts = (struct image_facts){ 0 };
	if (sys_peek((const void *)start, &elf, sizeof(elf)) < 0 ||
	    elf.e_ident[0] != 0x7f || elf.e_ident[1] != 'E' ||
	    elf.e_ident[2] != 'L' || elf.e_ident[3] != 'F' ||
	    elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf.e_phentsize != sizeof(program))
		return false;
	for (int pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < elf.e_phnum; i++) {
			uintptr_t at = start + elf.e_phoff +
				       i * sizeof(program);

			if (sys_peek((const void *)at, &program,
				     sizeof(program)) < 0)
				return false;
			if (pass == 0) {
				if (program.p_type != PT_LOAD || have_bias)
					continue;
				facts->bias = start - ((program.p_vaddr -
							program.p_offset) &
						       ~(uintptr_t)4095);
				have_bias = true;
			} else if (program.p_type == PT_NOTE) {
				read_build_id(facts->bias + program.p_vaddr,
					      program.p_memsz, facts);
			} else if (program.p_type == PT_DYNAMIC) {
				facts->dynamic = facts->bias + program.p_vaddr;
				facts->dynamic_size = program.p_memsz;
			} else if (program.p_type == PT_GNU_RELRO) {
				facts->relro = facts->bias + program.p_vaddr;
				facts->relro_size = program.p_memsz;
			} else if (program.p_type == PT_GNU_EH_FRAME) {
				facts->frames = facts->bias + program.p_vaddr;
			}
		}
		if (!have_bias)
			return false;
	}
	return true;
}

uintptr_t image_read_span(uintptr_t start)
{
	uintptr_t first = 0, end = 0;
	Elf64_Ehdr elf;
	Elf64_Phdr program;

	if (sys_peek((const void *)start, &elf, sizeof(elf)) < 0 ||
	    elf.e_phentsize != sizeof(program))
		return 0;
	for (unsigned i = 0; i < elf.e_phnum; i++) {
		uintptr_t at = start + elf.e_phoff + i * sizeof(program);

		if (sys_peek((const void *)at, &program, sizeof(program)) < 0)
			return 0;
		if (program.p_type != PT_LOAD)
			continue;
		if (end == 0)
			first = program.p_vaddr & ~(uintptr_t)4095;
		end = program.p_vaddr + program.p_memsz;
	}
	return end - first;
}
