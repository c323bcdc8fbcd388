/*
 * Reads the table of exception handlers (LSDA) of a function.  The table is trusted:
 * the C++ runtime reads it too.
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

static uint64_t read_uleb(const uint8_t **at)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

static int64_t read_sleb(const uint8_t **at)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64;) {
		uint8_t byte = *(*at)++;

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

static bool read_fixed(const uint8_t **at, size_t size, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < size; i++)
		*value |= (uint64_t)(*at)[i] << (8 * i);
	*at += size;
	return true;
}

static bool read_value(const uint8_t **at, uint8_t encoding, uint64_t *value)
{
	switch (encoding) {
	case ABSOLUTE: return read_fixed(at, sizeof(uintptr_t), value);
	case ULEB128: *value = read_uleb(at); return true;
	case UDATA2: return read_fixed(at, 2, value);
	case UDATA4: return read_fixed(at, 4, value);
	case UDATA8: return read_fixed(at, 8, value);
	default: return false;
	}
}

struct site {
	uint64_t start, length, pad, action;
};

struct sites {
	const uint8_t *at, *end; /* the call sites not yet read ... */
	const uint8_t *actions;	 /* ... and what follows them */
	uint8_t encoding;
	uint64_t base; /* of landing pads */
};

static bool open_sites(struct sites *sites, const uint8_t *at, uintptr_t start)
{
	uint8_t encoding = *at++;
	uint64_t size;

	sites->base = start;
	if (encoding != OMITTED && !read_value(&at, encoding, &sites->base))
		return false;
	if (*at++ != OMITTED)
		read_uleb(&at); /* where the types end */
	sites->encoding = *at++;
	size = read_uleb(&at);
	sites->at = at;
	sites->end = sites->actions = at + size;
	return true;
}

static bool next_site(struct sites *sites, struct site *site)
{
	if (sites->at >= sites->end)
		return false;
	if (!read_value(&sites->at, sites->encoding, &site->start) ||
	    !read_value(&sites->at, sites->encoding, &site->length) ||
	    !read_value(&sites->at, sites->encoding, &site->pad))
		return false;
	site->action = read_uleb(&sites->at);
	return true;
}

/* Calls that share a landing pad share its handlers: they are counted once. */
static bool is_repeated(struct sites before, const struct site *site,
			const uint8_t *here)
{
	struct site other;

	while (before.at < here && next_site(&before, &other))
		if (before.at < here && other.pad == site->pad &&
		    other.action == site->action)
			return true;
	return false;
}

/* Counts the clauses of one landing pad; true if @filter is one. */
static bool count_clauses(const struct sites *sites, uint64_t action,
			  bool is_it, int64_t filter, int *number)
{
	const uint8_t *at = sites->actions + action - 1;

	if (action == 0) {
		if (is_it && filter == 0)
			return true;
		(*number)++;
		return false;
	}
	for (;;) {
		int64_t this = read_sleb(&at);
		const uint8_t *from = at;
		int64_t next = read_sleb(&at);

		if (is_it && this == filter)
			return true;
		(*number)++;
		if (next == 0)
			return false;
		at = from + next;
	}
}

int lsda_count(const uint8_t *table, uintptr_t start)
{
	struct sites sites, first;
	struct site site;
	int count = 0;

	if (!table || !open_sites(&sites, table, start))
		return 0;
	first = sites;
	while (next_site(&sites, &site))
		if (site.pad != 0 && !is_repeated(first, &site, sites.at))
			count_clauses(&sites, site.action, false, 0, &count);
	return count;
}

int lsda_number(const uint8_t *table, uintptr_t start, uintptr_t pad,
		int64_t filter)
{
	struct sites sites, first;
	struct site site;
	int number = 0, fallback = -1;

	if (!table || !open_sites(&sites, table, start))
		return -1;
	first = sites;
	while (next_site(&sites, &site)) {
		bool is_it = sites.base + site.pad == pad;

		if (site.pad == 0 || is_repeated(first, &site, sites.at))
			continue;
		/* The unwinder may land at a pad for destructors although only
		 * catch clauses are listed. */
		if (is_it && fallback < 0)
			fallback = number;
		if (count_clauses(&sites, site.action, is_it, filter, &number))
			return number;
	}
	return fallback;
}
