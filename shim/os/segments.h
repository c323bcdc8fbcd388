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
 * one system call.  The notes of a segment are read in the same way (notes_next).
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

/* The notes of a segment of type PT_NOTE, from @at on. */
struct notes {
	uintptr_t at;
	uint64_t size;
	segments_read *read;
};

struct note {
	Elf64_Nhdr head;
	char name[5]; /* its first four bytes, and a NUL */
	uintptr_t contents;
};

static inline uint64_t notes_padded(uint64_t size)
{
	return (size + 3) & ~3ull;
}

static inline bool notes_next(struct notes *notes, struct note *note)
{
	const uintptr_t at = notes->at;
	uint64_t whole;

	if (notes->size < sizeof(note->head) ||
	    notes->read((const void *)at, &note->head, sizeof(note->head)) < 0)
		return false;
	note->contents = at + sizeof(note->head) +
			 notes_padded(note->head.n_namesz);
	whole = note->contents - at + notes_padded(note->head.n_descsz);
	if (whole > notes->size)
		return false;
	for (unsigned i = 0; i < sizeof(note->name); i++)
		note->name[i] = '\0';
	if (note->head.n_namesz >= 4 &&
	    notes->read((const void *)(at + sizeof(note->head)), note->name,
			4) < 0)
		return false;
	notes->at += whole;
	notes->size -= whole;
	return true;
}

#endif
