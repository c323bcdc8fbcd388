/*
 * The section is searched anew for each function: it is asked for once.
 */
#include "inspect/debuginfo/bindings.h"

#include <gelf.h>
#include <stddef.h>

static unsigned bindings_in(Elf_Scn *section, const GElf_Shdr *header,
			    uint64_t address)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = header->sh_entsize ?
			       header->sh_size / header->sh_entsize :
			       0;
	unsigned bindings = 0;
	GElf_Sym symbol;

	for (size_t i = 0; data && i < count; i++)
		if (gelf_getsym(data, (int)i, &symbol) &&
		    symbol.st_value == address &&
		    GELF_ST_TYPE(symbol.st_info) == STT_FUNC)
			bindings |= 1u << GELF_ST_BIND(symbol.st_info);
	return bindings;
}

unsigned bindings_at(Elf *elf, uint64_t address)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) &&
		    header.sh_type == SHT_SYMTAB)
			return bindings_in(section, &header, address);
	return 0;
}
