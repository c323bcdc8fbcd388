/*
 * Searches the index for exceptions.  It reads only the form that all linkers write:
 * sorted pairs of 32-bit offsets from the index.  Invalid data counts as "no function".
 */
#include "unwind/fde_index.h"

#include <shim/banned.h>

/* Encodings of addresses (DWARF exception headers). */
#define FORMAT_MASK	0x0f
#define FORMAT_ABSOLUTE 0x00
#define FORMAT_UDATA4	0x03
#define FORMAT_SDATA4	0x0b
#define FORMAT_UDATA8	0x04
#define FORMAT_SDATA8	0x0c
#define BASE_MASK	0xf0
#define BASE_NONE	0x00
#define BASE_PLACE	0x10
#define BASE_INDEX	0x30

struct pair {
	int32_t start; /* of the function */
	int32_t entry; /* its entry in .eh_frame */
};

/* Reads a number at any alignment. */
static uint64_t read_number(const unsigned char *at, unsigned size)
{
	uint64_t value = 0;

	while (size-- > 0)
		value = value << 8 | at[size];
	return value;
}

static struct pair pair_at(const struct frames *frames, uint32_t number)
{
	struct pair pair;

	__builtin_memcpy(&pair, frames->table + number * sizeof(pair),
			 sizeof(pair));
	return pair;
}

static uintptr_t start_of(const struct frames *frames, uint32_t number)
{
	return frames->index +
	       (uintptr_t)(intptr_t)pair_at(frames, number).start;
}

static unsigned size_of(unsigned char encoding)
{
	switch (encoding & FORMAT_MASK) {
	case FORMAT_UDATA4:
	case FORMAT_SDATA4: return 4;
	case FORMAT_ABSOLUTE:
	case FORMAT_UDATA8:
	case FORMAT_SDATA8: return 8;
	}
	return 0;
}

bool fde_open(struct frames *frames, const struct view *view, uintptr_t index)
{
	const unsigned char *header = view_at(view, index, 4);
	uintptr_t at = index + 4;
	const unsigned char *count;

	*frames = (struct frames){ .view = *view, .index = index };
	if (!header || header[0] != 1 || !size_of(header[1]) ||
	    (header[2] & ~FORMAT_MASK) != 0 || size_of(header[2]) != 4 ||
	    header[3] != (BASE_INDEX | FORMAT_SDATA4))
		return false;
	at += size_of(header[1]);
	count = view_at(view, at, 4);
	if (!count)
		return false;
	frames->count = (uint32_t)read_number(count, 4);
	frames->table = view_at(view, at + 4,
				frames->count * sizeof(struct pair));
	return frames->table != NULL && frames->count > 0;
}

/* Reads the augmentation of a CIE: a string and, if that begins with z, a length and
 * one item for each further letter.  R is the encoding of addresses. */
static bool read_encoding(const struct view *view, uintptr_t cie,
			  unsigned char *encoding)
{
	const unsigned char *head = view_at(view, cie, 9), *letters, *at, *end;
	uint64_t length;

	if (!head || read_number(head + 4, 4) != 0)
		return false;
	length = read_number(head, 4);
	if (length < 5 || length >= 0xfffffff0u ||
	    !view_at(view, cie, 4 + length))
		return false;
	end = head + 4 + length;
	letters = at = head + 9;
	while (at < end && *at)
		at++;
	at++;
	*encoding = FORMAT_ABSOLUTE;
	if (*letters != 'z')
		return at < end && *letters == '\0';
	/* Skips two alignments, the return register, and the length of the
	 * items: numbers with 7 bits in each byte. */
	for (int number = 0; number < 4; number++) {
		while (at < end && (*at & 0x80))
			at++;
		at++;
	}
	for (letters++; *letters; letters++) {
		if (at >= end)
			return false;
		switch (*letters) {
		case 'R': *encoding = *at; return true;
		case 'P':
			if (!size_of(*at))
				return false;
			at += 1 + size_of(*at);
			break;
		case 'L': at++; break;
		case 'S':
		case 'B': break;
		default: return false;
		}
	}
	return true;
}

static bool read_cie(struct frames *frames, uintptr_t cie)
{
	if (frames->cie == cie)
		return true;
	frames->cie = 0;
	if (!read_encoding(&frames->view, cie, &frames->encoding))
		return false;
	frames->cie = cie;
	return true;
}

static uintptr_t read_address(const struct frames *frames,
			      const unsigned char *at, uintptr_t place)
{
	uint64_t value = read_number(at, size_of(frames->encoding));

	if ((frames->encoding & FORMAT_MASK) == FORMAT_SDATA4)
		value = (uint64_t)(int64_t)(int32_t)value;
	switch (frames->encoding & BASE_MASK) {
	case BASE_PLACE: return place + value;
	case BASE_INDEX: return frames->index + value;
	}
	return value;
}

/* Reads the range of the entry of pair @number; it must begin at the pair's address. */
static bool read_entry(struct frames *frames, uint32_t number,
		       struct frame_range *range)
{
	uintptr_t entry = frames->index +
			  (uintptr_t)(intptr_t)pair_at(frames, number).entry;
	const unsigned char *head = view_at(&frames->view, entry, 8);
	unsigned size;
	uint64_t length;

	if (!head)
		return false;
	length = read_number(head, 4);
	if (length >= 0xfffffff0u || read_number(head + 4, 4) == 0 ||
	    !view_at(&frames->view, entry, 4 + length) ||
	    !read_cie(frames, entry + 4 - read_number(head + 4, 4)))
		return false;
	size = size_of(frames->encoding);
	if (size == 0 || (frames->encoding & 0x80) || length < 4 + 2 * size)
		return false;
	range->start = read_address(frames, head + 8, entry + 8);
	range->end = range->start + read_number(head + 8 + size, size);
	return range->start == start_of(frames, number) &&
	       range->end > range->start;
}

/* The last pair that begins at or below @address. */
static uint32_t find_pair(const struct frames *frames, uintptr_t address)
{
	uint32_t low = 0, high = frames->count;

	if (start_of(frames, frames->last) <= address) {
		low = frames->last;
		/* In a scan of ascending addresses, the pair is mostly one of the next
		 * three. */
		for (uint32_t i = low + 1; i < low + 4 && i < high; i++)
			if (start_of(frames, i) > address)
				return i - 1;
	}
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (start_of(frames, middle) <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

bool fde_find(struct frames *frames, uintptr_t address,
	      struct frame_range *range)
{
	if (frames->count == 0)
		return false;
	if (address - frames->range.start >=
	    frames->range.end - frames->range.start) {
		frames->last = find_pair(frames, address);
		if (!read_entry(frames, frames->last, &frames->range))
			frames->range = (struct frame_range){ 0, 0 };
	}
	*range = frames->range;
	return address - range->start < range->end - range->start;
}

bool fde_get(struct frames *frames, uint32_t number, struct frame_range *range)
{
	return number < frames->count && read_entry(frames, number, range);
}
