/*
 * Lists the names by which an object calls functions: those of other objects
 * from relocations of its linkage table, those of other source files from its
 * debug information.
 */
#include <dwarf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names/elf_callees.h"
#include "names/elf_dies.h"

#ifndef DW_TAG_GNU_call_site
#define DW_TAG_GNU_call_site 0x4109
#endif

/* --- linkage tables --- */

static bool is_call(unsigned machine, uint64_t type)
{
	return (machine == EM_X86_64 && type == R_X86_64_JUMP_SLOT) ||
	       (machine == EM_AARCH64 && type == R_AARCH64_JUMP_SLOT);
}

/* With -fno-plt, calls go through slots that are also for pointers. */
static bool is_pointer(unsigned machine, uint64_t type)
{
	return (machine == EM_X86_64 && type == R_X86_64_GLOB_DAT) ||
	       (machine == EM_AARCH64 && type == R_AARCH64_GLOB_DAT);
}

static bool is_of_function(const GElf_Sym *symbol)
{
	return symbol->st_shndx == SHN_UNDEF &&
	       GELF_ST_TYPE(symbol->st_info) == STT_FUNC;
}

static void add_relocations(Elf *elf, unsigned machine, Elf_Scn *section,
			    const GElf_Shdr *header, take_called *take)
{
	Elf_Scn *table = elf_getscn(elf, header->sh_link);
	Elf_Data *data = elf_getdata(section, NULL);
	Elf_Data *symbols = table ? elf_getdata(table, NULL) : NULL;
	GElf_Shdr table_header;
	const char *name;
	GElf_Rela rela;
	GElf_Sym symbol;
	int i;

	if (!data || !symbols || !gelf_getshdr(table, &table_header))
		return;
	for (i = 0; gelf_getrela(data, i, &rela); i++) {
		uint64_t type = GELF_R_TYPE(rela.r_info);

		if (!gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info),
				 &symbol) ||
		    !(is_call(machine, type) ||
		      (is_pointer(machine, type) && is_of_function(&symbol))))
			continue;
		name = elf_strptr(elf, table_header.sh_link, symbol.st_name);
		if (name && name[0])
			take(name);
	}
}

void called_by_table(Elf *elf, take_called *take)
{
	Elf_Scn *section = NULL;
	GElf_Ehdr machine;
	GElf_Shdr header;

	if (!elf || !gelf_getehdr(elf, &machine))
		return;
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) &&
		    header.sh_type == SHT_RELA && (header.sh_flags & SHF_ALLOC))
			add_relocations(elf, machine.e_machine, section,
					&header, take);
}

/* --- debug information --- */

#define DEPTH_MAX 64

static void add_site(Dwarf_Die *site, take_called *take)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;
	Dwarf_Die callee;

	if (!dwarf_attr(site, DW_AT_call_origin, &attribute) &&
	    !dwarf_attr(site, DW_AT_abstract_origin, &attribute))
		return;
	if (!dwarf_formref_die(&attribute, &callee))
		return;
	if (dwarf_attr_integrate(&callee, DW_AT_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	else if (dwarf_attr_integrate(&callee, DW_AT_name, &attribute))
		name = dwarf_formstring(&attribute);
	if (name && name[0])
		take(name);
}

static bool visit_site(Dwarf_Die *die, void *take)
{
	int tag = dwarf_tag(die);

	if (tag != DW_TAG_call_site && tag != DW_TAG_GNU_call_site)
		return true;
	add_site(die, *(take_called **)take);
	return false;
}

void called_by_sites(Dwarf *dwarf, take_called *take, uint64_t *steps)
{
	Dwarf_Off at = 0, next;
	size_t header;
	Dwarf_Die unit;

	while (dwarf && *steps > 0 &&
	       dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL) == 0) {
		if (dwarf_offdie(dwarf, at + header, &unit))
			dies_walk(&unit, DEPTH_MAX, steps, visit_site, &take);
		at = next;
	}
}
