/* Looks for sections that zstd has compressed: see zstd.h. */
#include "inspect/debuginfo/zstd.h"

#include <gelf.h>
#include <stdint.h>
#include <string.h>

bool zstd_is_in(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf_Data *data;
	uint32_t kind;

	while (elf && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) &&
		    header.sh_flags & SHF_COMPRESSED &&
		    (data = elf_rawdata(section, NULL)) && data->d_buf &&
		    data->d_size >= sizeof(kind)) {
			memcpy(&kind, data->d_buf, sizeof(kind));
			if (kind == COMPRESSED_WITH_ZSTD)
				return true;
		}
	return false;
}
