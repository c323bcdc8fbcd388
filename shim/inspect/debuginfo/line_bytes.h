/*
 * Numbers and strings in the sections of line tables, and lists that grow.
 */
#ifndef SHIM_DEBUGINFO_LINE_BYTES_H
#define SHIM_DEBUGINFO_LINE_BYTES_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line_list {
	void *items;
	size_t count, room;
};

/* Makes room for @many items of @size bytes each; returns the first, or NULL without
 * memory. */
void *line_add_items(struct line_list *list, size_t size, size_t many);

struct line_bytes {
	const unsigned char *at, *end;
	bool is_bad; /* a read went beyond the end */
};

/* False, and empty @bytes, if the file has no such section. */
bool line_find_section(Elf *elf, const char *wanted, struct line_bytes *bytes);

/* Each read advances @in.  A read beyond the end sets is_bad, and returns 0 or "". */
uint64_t line_read_fixed(struct line_bytes *in, unsigned size);
uint64_t line_read_unsigned(struct line_bytes *in);
int64_t line_read_signed(struct line_bytes *in);
const char *line_read_string(struct line_bytes *in);
void line_skip(struct line_bytes *in, uint64_t size);

/* The string at @offset of @section; "?" beyond its end. */
const char *line_string_at(const struct line_bytes *section, uint64_t offset);

#endif
