/*
 * Which of many names a function is called by.  Compilers and linkers give one
 * address several names: aliases, complete and base objects, folded copies.  Call
 * sites say which of them the source uses: those of other objects in relocations
 * of linkage tables, those of other source files in debug information.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

#include "called.h"
#include "object_files.h"

#ifndef DW_TAG_GNU_call_site
#define DW_TAG_GNU_call_site 0x4109
#endif

/* --- linkage tables --- */

static bool is_call(unsigned machine, uint64_t type)
{
	return (machine == EM_X86_64 && type == R_X86_64_JUMP_SLOT) ||
	       (machine == EM_AARCH64 && type == R_AARCH64_JUMP_SLOT);
}

static void add_relocations(Elf *elf, unsigned machine, Elf_Scn *section,
			    const GElf_Shdr *header, struct names *called)
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
		if (!is_call(machine, GELF_R_TYPE(rela.r_info)) ||
		    !gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info),
				 &symbol))
			continue;
		name = elf_strptr(elf, table_header.sh_link, symbol.st_name);
		if (name && name[0])
			names_add(called, name);
	}
}

void called_by_table(struct object *object, struct names *called)
{
	struct object_files *files = symbols_open(object);
	Elf_Scn *section = NULL;
	GElf_Ehdr machine;
	GElf_Shdr header;
	GElf_Addr bias;
	Elf *elf = files ? dwfl_module_getelf(files->module, &bias) : NULL;

	if (!elf || !gelf_getehdr(elf, &machine))
		return;
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) &&
		    header.sh_type == SHT_RELA && (header.sh_flags & SHF_ALLOC))
			add_relocations(elf, machine.e_machine, section,
					&header, called);
}

/* --- debug information --- */

#define DEPTH_MAX 64

static void add_site(Dwarf_Die *site, struct names *called)
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
		names_add(called, name);
}

static void add_unit(Dwarf_Die *unit, struct names *called, uint64_t *steps)
{
	Dwarf_Die stack[DEPTH_MAX + 1];
	int depth = 0, tag;

	if (dwarf_child(unit, &stack[0]) != 0)
		return;
	while (depth >= 0 && *steps > 0) {
		(*steps)--;
		tag = dwarf_tag(&stack[depth]);
		if (tag == DW_TAG_call_site || tag == DW_TAG_GNU_call_site)
			add_site(&stack[depth], called);
		else if (depth < DEPTH_MAX &&
			 dwarf_child(&stack[depth], &stack[depth + 1]) == 0) {
			depth++;
			continue;
		}
		while (depth >= 0 &&
		       dwarf_siblingof(&stack[depth], &stack[depth]) != 0)
			depth--;
	}
}

void called_by_sites(struct object *object, struct names *called,
		     uint64_t *steps)
{
	struct object_files *files = symbols_open(object);
	Dwarf_Off at = 0, next;
	Dwarf_Addr bias;
	size_t header;
	Dwarf *dwarf = files ? dwfl_module_getdwarf(files->module, &bias) :
			       NULL;
	Dwarf_Die unit;

	while (dwarf && *steps > 0 &&
	       dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL) == 0) {
		if (dwarf_offdie(dwarf, at + header, &unit))
			add_unit(&unit, called, steps);
		at = next;
	}
}

/* --- choosing --- */

void called_choose(struct object *object, struct symbol *symbols, size_t count,
		   const struct names *called)
{
	struct object_files *files = symbols_open(object);
	int i, all = files ? dwfl_module_getsymtab(files->module) : 0;
	struct symbol *found;
	const char *name;
	GElf_Addr value;
	GElf_Sym symbol;

	for (i = 0; i < all; i++) {
		name = dwfl_module_getsym_info(files->module, i, &symbol,
					       &value, NULL, NULL, NULL);
		if (!symbols_is_function(&symbol, name))
			continue;
		found = symbols_at(symbols, count, value);
		if (!found || !found->has_others)
			continue;
		name = keep_text(name, symbols_name_length(name));
		if (names_find(called, name) == NONE)
			continue;
		found->name = name;
		found->has_others = false;	/* it is chosen */
	}
}
