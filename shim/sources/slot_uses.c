/*
 * Looks at each byte of the code: an instruction may begin at any.
 */
#include "sources/slot_uses.h"

#include "image/code_bytes.h"
#include "inspect/code.h"
#include "os/segments.h"
#include "os/sys.h"
#include "sources/libcall_code.h"
#include "unwind/eh_frame.h"

#include <elf.h>

#include <shim/banned.h>

#define BUFFER_SIZE   (64u << 10)
#define FUNCTION_SIZE (64u << 10)

static unsigned char buffer[BUFFER_SIZE];
static unsigned char function_copy[FUNCTION_SIZE];
static unsigned char seen[FUNCTION_SIZE / 8 + 1];

/* Whether the instruction's function only calls what the instruction loads. */
static bool is_only_called(uintptr_t instruction)
{
	bool may_come;
	const struct decode *decoder = code_decoder(&may_come);
	struct decode_load load = { .at = instruction,
				    .copy = function_copy,
				    .seen = seen };
	struct tables tables;
	struct fde fde;

	if (!decoder || !eh_frame_open(instruction, &tables, &fde) ||
	    fde.end - fde.start > FUNCTION_SIZE ||
	    code_bytes_read(fde.start, function_copy, fde.end - fde.start) < 0)
		return false;
	load.start = fde.start;
	load.end = fde.end;
	load.has_handlers = fde.lsda != 0;
	return decoder->called(&load);
}

static void note_use(struct slot_place *places, uint32_t count, uintptr_t slot,
		     uintptr_t address, enum slot_use use)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (places[middle].slot < slot)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == count || places[low].slot != slot)
		return;
	if (use == SLOT_LOADED && !places[low].is_read)
		use = is_only_called(address - SLOT_USE_BEFORE) ? SLOT_CALLED :
								  SLOT_READ;
	places[low].is_called |= use == SLOT_CALLED;
	places[low].is_read |= use != SLOT_CALLED;
}

static void search_buffer(uintptr_t address, size_t size,
			  struct slot_place *places, uint32_t count)
{
	uintptr_t first = places[0].slot, last = places[count - 1].slot;

	for (size_t i = SLOT_USE_BEFORE; i + SLOT_USE_SIZE <= size; i++) {
		uintptr_t slot;
		enum slot_use use = slot_use_at(buffer + i, address + i, &slot);

		if (slot - first <= last - first)
			note_use(places, count, slot, address + i, use);
	}
}

static int search_code(uintptr_t start, uintptr_t end,
		       struct slot_place *places, uint32_t count)
{
	const size_t again = SLOT_USE_BEFORE + SLOT_USE_SIZE - 1;
	size_t lead = SLOT_USE_BEFORE; /* zeros before the first instruction */

	__builtin_memset(buffer, 0, lead);
	while (start < end) {
		size_t room = BUFFER_SIZE - lead;
		size_t size = end - start < room ? end - start : room;
		int r = code_bytes_read(start, buffer + lead, size);

		if (r < 0)
			return r;
		search_buffer(start - lead, lead + size, places, count);
		start += size == end - start ? size : size - again;
		lead = 0;
	}
	return 0;
}

int slot_uses_find(uintptr_t start, uintptr_t bias, struct slot_place *places,
		   uint32_t count)
{
	struct segments segments = segments_at(start, sys_peek);
	Elf64_Phdr part;
	int r = 0;

	while (count > 0 && r == 0 && segments_next(&segments, &part))
		if (part.p_type == PT_LOAD && (part.p_flags & PF_X))
			r = search_code(bias + part.p_vaddr,
					bias + part.p_vaddr + part.p_filesz,
					places, count);
	return r;
}
