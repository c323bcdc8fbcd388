/*
 * The program headers of a mapped image:
 *
 *     struct segments segments = segments_at(image->start, sys_peek);
 *
 *     while (segments_next(&segments, &part))
 *             ...
 *
 * The loop also ends if a header cannot be read, because the program may unmap the image
 * at any time.  Who holds the lock reads with pages_read: all headers of most images take
 * one system call.
 */
#ifndef SHIM_SEGMENTS_H
#define SHIM_SEGMENTS_H

#include "os/sys.h"

#include <elf.h>
#include <stdbool.h>

typedef int segments_read(const void *from, void *to, size_t size);

struct segments {
	uintptr_t at;
	unsigned left;
	segments_read *read;
};

static inline struct segments segments_at(uintptr_t start, segments_read *read)
{
	struct segments segments = { 0, 0, read };
	Elf64_Ehdr elf;

	if (read((const void *)start, &elf, sizeof(elf)) == 0 &&
	    elf.e_phentsize == sizeof(Elf64_Phdr)) {
		segments.at = start + elf.e_phoff;
		segments.left = elf.e_phnum;
	}
	return segments;
}

static inline bool segments_next(struct segments *segments, Elf64_Phdr *part)
{
	if (segments->left == 0 ||
	    segments->read((const void *)segments->at, part, sizeof(*part)) < 0)
		return false;
	segments->at += sizeof(*part);
	segments->left--;
	return true;
}

#endif
