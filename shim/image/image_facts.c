/*
 * Reads the program headers of an image from its memory, because another file may have
 * replaced the image's file.
 */
#include "image/image_facts.h"

#include "os/pages.h"
#include "os/segments.h"
#include "os/text.h"
#include "runtime/state.h"

#include <elf.h>

#include <shim/banned.h>

/* Go's linker notes a build id of its own. */
#define NT_GO_BUILD_ID 4

static bool is_note(const struct note *note, uint32_t type, const char *name)
{
	return note->head.n_type == type && note->head.n_namesz == 4 &&
	       text_equal(note->name, name);
}

static void read_notes(uintptr_t at, uint64_t size, struct image_facts *facts)
{
	struct notes notes = { at, size, pages_read };
	struct note note;

	while (notes_next(&notes, &note)) {
		facts->is_of_go |= is_note(&note, NT_GO_BUILD_ID, "Go");
		if (facts->build_id_size == 0 &&
		    is_note(&note, NT_GNU_BUILD_ID, "GNU") &&
		    note.head.n_descsz <= sizeof(facts->build_id) &&
		    pages_read((const void *)note.contents, facts->build_id,
			       note.head.n_descsz) == 0)
			facts->build_id_size = note.head.n_descsz;
	}
}

static bool find_bias(uintptr_t start, struct image_facts *facts)
{
	struct segments segments = segments_at(start, pages_read);
	Elf64_Phdr part;

	while (segments_next(&segments, &part)) {
		if (part.p_type != PT_LOAD)
			continue;
		facts->bias = start - ((part.p_vaddr - part.p_offset) &
				       ~(uintptr_t)4095);
		return true;
	}
	return false;
}

static bool read_segments(uintptr_t start, struct image_facts *facts)
{
	struct segments segments = segments_at(start, pages_read);
	Elf64_Phdr part;

	while (segments_next(&segments, &part)) {
		uintptr_t at = facts->bias + part.p_vaddr;

		switch (part.p_type) {
		case PT_NOTE: read_notes(at, part.p_memsz, facts); break;
		case PT_DYNAMIC:
			facts->dynamic = at;
			facts->dynamic_size = part.p_memsz;
			break;
		case PT_GNU_RELRO:
			facts->relro = at;
			facts->relro_size = part.p_memsz;
			break;
		case PT_GNU_EH_FRAME: facts->frames = at; break;
		}
	}
	return segments.left == 0;
}

static bool is_elf(uintptr_t start)
{
	unsigned char ident[EI_NIDENT];

	return pages_read((const void *)start, ident, sizeof(ident)) == 0 &&
	       ident[0] == 0x7f && ident[1] == 'E' && ident[2] == 'L' &&
	       ident[3] == 'F' && ident[EI_CLASS] == ELFCLASS64;
}

bool image_read_facts(uintptr_t start, struct image_facts *facts)
{
	bool is_good;

	ASSERT_LOCKED();
	*facts = (struct image_facts){ 0 };
	pages_begin(0);
	is_good = is_elf(start) && find_bias(start, facts) &&
		  read_segments(start, facts);
	return is_good;
}

uintptr_t image_read_span(uintptr_t start)
{
	struct segments segments;
	uintptr_t first = 0, end = 0;
	Elf64_Phdr part;

	ASSERT_LOCKED();
	pages_begin(0);
	segments = segments_at(start, pages_read);
	while (segments_next(&segments, &part)) {
		if (part.p_type != PT_LOAD)
			continue;
		if (end == 0)
			first = part.p_vaddr & ~(uintptr_t)4095;
		end = part.p_vaddr + part.p_memsz;
	}
	return segments.left == 0 ? end - first : 0;
}
