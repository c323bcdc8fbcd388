/*
 * Reads numbers and strings from the sections of line tables.  Nothing is trusted: a
 * read beyond the end returns 0 and is noted.
 */
#define _GNU_SOURCE
#include "inspect/debuginfo/line_bytes.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

void *line_add_items(struct line_list *list, size_t size, size_t many)
{
	if (list->count + many > list->room) {
		size_t room = list->room ? list->room * 2 : 1024;
		void *larger;

		while (room < list->count + many)
			room *= 2;
		larger = realloc(list->items, room * size);
		if (!larger)
			return NULL;
		list->items = larger;
		list->room = room;
	}
	list->count += many;
	return (char *)list->items + (list->count - many) * size;
}

bool line_find_section(Elf *elf, const char *wanted, struct line_bytes *bytes)
{
	Elf_Scn *section = NULL;
	size_t names;

	*bytes = (struct line_bytes){ NULL, NULL, true };
	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strcmp(name, wanted) != 0)
			continue;
		/* libdw has decompressed the section. */
		data = elf_rawdata(section, NULL);
		if (!data || !data->d_buf || (header.sh_flags & SHF_COMPRESSED))
			return false;
		bytes->at = data->d_buf;
		bytes->end = bytes->at + data->d_size;
		bytes->is_bad = false;
		return true;
	}
	return false;
}

uint64_t line_read_fixed(struct line_bytes *in, unsigned size)
{
	uint64_t value = 0;

	if ((size_t)(in->end - in->at) < size) {
		in->is_bad = true;
		in->at = in->end;
		return 0;
	}
	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)in->at[i] << 8 * i;
	in->at += size;
	return value;
}

uint64_t line_read_unsigned(struct line_bytes *in)
{
	uint64_t value = 0;
	unsigned shift = 0;

	while (in->at < in->end) {
		unsigned char byte = *in->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80))
			return value;
	}
	in->is_bad = true;
	return 0;
}

int64_t line_read_signed(struct line_bytes *in)
{
	const unsigned char *first = in->at;
	uint64_t value = line_read_unsigned(in);
	unsigned bits = 7 * (unsigned)(in->at - first);

	if (!in->is_bad && bits < 64 && (in->at[-1] & 0x40))
		value |= ~0ull << bits;
	return (int64_t)value;
}

const char *line_read_string(struct line_bytes *in)
{
	const char *text = (const char *)in->at;
	const unsigned char *end = memchr(in->at, 0,
					  (size_t)(in->end - in->at));

	if (!end) {
		in->is_bad = true;
		in->at = in->end;
		return "";
	}
	in->at = end + 1;
	return text;
}

const char *line_string_at(const struct line_bytes *section, uint64_t offset)
{
	struct line_bytes in = *section;

	if (offset >= (uint64_t)(in.end - in.at))
		return "?";
	in.at += offset;
	return line_read_string(&in);
}

void line_skip(struct line_bytes *in, uint64_t size)
{
	if (size > (uint64_t)(in->end - in->at)) {
		in->is_bad = true;
		in->at = in->end;
	} else {
		in->at += size;
	}
}
