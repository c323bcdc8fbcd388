#include "soname.h"

#include "sys.h"

#include <elf.h>

#include <shim/banned.h>

#define ENTRIES_MAX 256

static bool find_dynamic(const struct image_entry *image, uintptr_t *dynamic)
{
	Elf64_Ehdr elf;
	Elf64_Phdr part;

	if (sys_peek((const void *)image->start, &elf, sizeof(elf)) < 0 ||
	    elf.e_phentsize != sizeof(part))
		return false;
	for (unsigned i = 0; i < elf.e_phnum; i++) {
		uintptr_t at = image->start + elf.e_phoff + i * sizeof(part);

		if (sys_peek((const void *)at, &part, sizeof(part)) < 0)
			return false;
		if (part.p_type == PT_DYNAMIC) {
			*dynamic = image->bias + part.p_vaddr;
			return true;
		}
	}
	return false;
}

/* The dynamic linker has made addresses of the offsets, but for the kernel's
 * object. */
static bool find_name(const struct image_entry *image, uintptr_t dynamic,
		      uintptr_t *name)
{
	uintptr_t strings = 0, offset = 0;
	Elf64_Dyn entry;

	for (unsigned i = 0; i < ENTRIES_MAX; i++, dynamic += sizeof(entry)) {
		if (sys_peek((const void *)dynamic, &entry, sizeof(entry)) < 0)
			return false;
		if (entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_STRTAB)
			strings = entry.d_un.d_ptr;
		if (entry.d_tag == DT_SONAME)
			offset = entry.d_un.d_val;
	}
	if (strings != 0 && strings < image->start)
		strings += image->bias;
	*name = strings + offset;
	return strings != 0 && offset != 0;
}

bool soname_read(const struct image_entry *image, char name[SONAME_SIZE])
{
	uintptr_t dynamic, at;

	if (!find_dynamic(image, &dynamic) || !find_name(image, dynamic, &at))
		return false;
	for (unsigned i = 0; i < SONAME_SIZE; i++) {
		if (sys_peek((const void *)(at + i), &name[i], 1) < 0)
			return false;
		if (name[i] == '\0')
			return true;
	}
	return false;
}
