/*
 * Reads the table of exception handlers (LSDA) of a function.  shim reads the whole
 * table, but the C++ runtime reads only the entry of one call.  So a damaged table may
 * go unnoticed by the program: a pointer out of the table's segment ends the reading.
 */
#include "unwind/lsda.h"

#include <stdbool.h>
#include <stddef.h>

#include <shim/banned.h>

/* Encodings of values: the DW_EH_PE_* that compilers use here. */
enum {
	ABSOLUTE = 0x00,
	ULEB128 = 0x01,
	UDATA2 = 0x02,
	UDATA4 = 0x03,
	UDATA8 = 0x04,
	OMITTED = 0xff,
};

struct reader {
	const uint8_t *at, *low, *end; /* of the segment */
	bool failed;
};

static uint8_t read_byte(struct reader *reader)
{
	if (reader->at < reader->low || reader->at >= reader->end)
		reader->failed = true;
	return reader->failed ? 0 : *reader->at++;
}

static uint64_t read_uleb(struct reader *reader)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = read_byte(reader);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

static int64_t read_sleb(struct reader *reader)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64;) {
		uint8_t byte = read_byte(reader);

		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			if ((byte & 0x40) && shift < 64)
				value |= ~0ull << shift;
			break;
		}
	}
	return (int64_t)value;
}

static uint64_t read_fixed(struct reader *reader, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)read_byte(reader) << (8 * i);
	return value;
}

static uint64_t read_value(struct reader *reader, uint8_t encoding)
{
	switch (encoding) {
	case ABSOLUTE: return read_fixed(reader, sizeof(uintptr_t));
	case ULEB128: return read_uleb(reader);
	case UDATA2: return read_fixed(reader, 2);
	case UDATA4: return read_fixed(reader, 4);
	case UDATA8: return read_fixed(reader, 8);
	default: reader->failed = true; return 0;
	}
}

/* False if @distance leads out of the segment. */
static bool move_within(struct reader *reader, const uint8_t *from,
			uint64_t distance)
{
	uintptr_t to = (uintptr_t)from + distance;

	if (to < (uintptr_t)reader->low || to > (uintptr_t)reader->end)
		reader->failed = true;
	else
		reader->at = (const uint8_t *)to;
	return !reader->failed;
}

struct site {
	uint64_t start, length, pad, action;
};

struct sites {
	struct reader reader;	/* at the next call site */
	const uint8_t *actions; /* the end of the call sites */
	uint8_t encoding;
	uint64_t base; /* of landing pads */
};

static bool open_sites(struct sites *sites, const struct lsda *table)
{
	struct reader *reader = &sites->reader;
	uint8_t encoding;
	uint64_t size;

	*reader = (struct reader){ table->at, table->at, table->end, false };
	sites->base = table->start;
	encoding = read_byte(reader);
	if (encoding != OMITTED)
		sites->base = read_value(reader, encoding);
	if (read_byte(reader) != OMITTED)
		read_uleb(reader); /* where the types end */
	sites->encoding = read_byte(reader);
	size = read_uleb(reader);
	if (reader->failed || size > (uint64_t)(reader->end - reader->at))
		return false;
	sites->actions = reader->at + size;
	return true;
}

static bool next_site(struct sites *sites, struct site *site)
{
	struct reader *reader = &sites->reader;

	if (reader->at >= sites->actions)
		return false;
	site->start = read_value(reader, sites->encoding);
	site->length = read_value(reader, sites->encoding);
	site->pad = read_value(reader, sites->encoding);
	site->action = read_uleb(reader);
	return !reader->failed;
}

/* Calls that share a landing pad share its handlers, which are counted once. */
static bool is_repeated(struct sites before, const struct site *site,
			const uint8_t *here)
{
	struct site other;

	while (before.reader.at < here && next_site(&before, &other))
		if (before.reader.at < here && other.pad == site->pad &&
		    other.action == site->action)
			return true;
	return false;
}

/* Adds the clauses of one landing pad to *@number; true if it reaches the clause of
 * @filter at the pad that is searched for (@is_match). */
static bool count_clauses(const struct sites *sites, uint64_t action,
			  bool is_match, int64_t filter, int *number)
{
	struct reader reader = sites->reader;
	size_t left = (size_t)(reader.end - sites->actions);

	if (action == 0) {
		if (is_match && filter == 0)
			return true;
		(*number)++;
		return false;
	}
	if (!move_within(&reader, sites->actions, action - 1))
		return false;
	/* A chain that is longer than the table is a cycle. */
	while (left-- > 0) {
		int64_t this = read_sleb(&reader);
		const uint8_t *from = reader.at;
		int64_t next = read_sleb(&reader);

		if (reader.failed)
			return false;
		if (is_match && this == filter)
			return true;
		(*number)++;
		if (next == 0 || !move_within(&reader, from, (uint64_t)next))
			return false;
	}
	return false;
}

int lsda_count(const struct lsda *table)
{
	struct sites sites, first;
	struct site site;
	int count = 0;

	if (!table->at || !open_sites(&sites, table))
		return 0;
	first = sites;
	while (next_site(&sites, &site))
		if (site.pad != 0 &&
		    !is_repeated(first, &site, sites.reader.at))
			count_clauses(&sites, site.action, false, 0, &count);
	return count;
}

int lsda_number(const struct lsda *table, uintptr_t pad, int64_t filter)
{
	struct sites sites, first;
	struct site site;
	int number = 0, fallback = -1;

	if (!table->at || !open_sites(&sites, table))
		return -1;
	first = sites;
	while (next_site(&sites, &site)) {
		bool is_match = sites.base + site.pad == pad;

		if (site.pad == 0 || is_repeated(first, &site, sites.reader.at))
			continue;
		/* The unwinder may land at a pad for destructors although only
		 * catch clauses are listed. */
		if (is_match && fallback < 0)
			fallback = number;
		if (count_clauses(&sites, site.action, is_match, filter,
				  &number))
			return number;
	}
	return fallback;
}
