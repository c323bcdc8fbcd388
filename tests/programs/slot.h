/*
 * Finds the object that gets this object's calls of malloc (or SLOT_OF), from the GOT
 * slot of these calls.
 */
#ifndef SLOT_H
#define SLOT_H

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#ifndef SLOT_OF
#define SLOT_OF "malloc"
#endif

static const char *called_object(void)
{
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;
	const ElfW(Rela) *slots = NULL;
	struct link_map *map = NULL;
	Dl_info info = { .dli_fname = "nowhere" }, own;
	size_t size = 0;

	dladdr1(_DYNAMIC, &own, (void **)&map, RTLD_DL_LINKMAP);
	for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag; entry++)
		switch (entry->d_tag) {
		case DT_SYMTAB: symbols = (void *)entry->d_un.d_ptr; break;
		case DT_STRTAB: strings = (void *)entry->d_un.d_ptr; break;
		case DT_JMPREL: slots = (void *)entry->d_un.d_ptr; break;
		case DT_PLTRELSZ: size = entry->d_un.d_val; break;
		}
	for (size_t i = 0; i < size / sizeof(*slots); i++)
		if (!strcmp(strings + symbols[slots[i].r_info >> 32].st_name,
			    SLOT_OF))
			dladdr(*(void **)(map->l_addr + slots[i].r_offset),
			       &info);
	return info.dli_fname;
}

#endif
