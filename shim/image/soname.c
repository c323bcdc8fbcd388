/*
 * Reads the DT_SONAME of a loaded object from its mapped dynamic section.  The object
 * may be unmapped at any time, so system calls read it.
 */
#include "image/soname.h"

#include "os/segments.h"
#include "os/sys.h"

#include <shim/banned.h>

#define ENTRIES_MAX 256

static bool find_dynamic(const struct image_entry *image, uintptr_t *dynamic)
{
	struct segments segments = segments_at(image->start, sys_peek);
	Elf64_Phdr part;

	while (segments_next(&segments, &part))
		if (part.p_type == PT_DYNAMIC) {
			*dynamic = image->bias + part.p_vaddr;
			return true;
		}
	return false;
}

/* The loader has relocated the addresses in the section, except in the vdso. */
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
