/*
 * The program headers of a mapped image:
 *
 *     struct segments segments = segments_at(image->start);
 *
 *     while (segments_next(&segments, &part))
 *             ...
 *
 * The loop also ends if a header cannot be read, because the program may unmap the image
 * at any time.
 */
#ifndef SHIM_SEGMENTS_H
#define SHIM_SEGMENTS_H

#include "os/sys.h"

#include <elf.h>
#include <stdbool.h>

struct segments {
	uintptr_t at;
	unsigned left;
};

static inline struct segments segments_at(uintptr_t start)
{
	struct segments segments = { 0, 0 };
	Elf64_Ehdr elf;

	if (sys_peek((const void *)start, &elf, sizeof(elf)) == 0 &&
	    elf.e_phentsize == sizeof(Elf64_Phdr)) {
		segments.at = start + elf.e_phoff;
		segments.left = elf.e_phnum;
	}
	return segments;
}

static inline bool segments_next(struct segments *segments, Elf64_Phdr *part)
{
	if (segments->left == 0 ||
	    sys_peek((const void *)segments->at, part, sizeof(*part)) < 0)
		return false;
	segments->at += sizeof(*part);
	segments->left--;
	return true;
}

#endif
