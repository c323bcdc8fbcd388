/*
 * A set of strings, numbered in the order of insertion.  The table uses open
 * addressing and doubles when it is two thirds full.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"

static uint64_t hash_text(const char *text)
{
	uint64_t hash = hash_seed;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
	return hash_mix(hash);
}

static size_t find_name(const struct names *names, const char *text)
{
	size_t mask = names->capacity - 1, i = hash_text(text) & mask;

	while (names->slots[i] &&
	       strcmp(names->text[names->slots[i] - 1], text))
		i = (i + 1) & mask;
	return i;
}

uint32_t names_add(struct names *names, const char *text)
{
	size_t slot;
	uint32_t i;

	if ((size_t)names->count * 2 >= names->capacity) {
		names->capacity = names->capacity ? names->capacity * 2 : 64;
		free(names->slots);
		names->slots = allocate(names->capacity, sizeof(uint32_t));
		for (i = 0; i < names->count; i++)
			names->slots[find_name(names, names->text[i])] = i + 1;
	}
	slot = find_name(names, text);
	if (!names->slots[slot]) {
		GROW(names->text, names->count, names->room);
		names->text[names->count++] = text;
		names->slots[slot] = names->count;
	}
	return names->slots[slot] - 1;
}

uint32_t names_keep(struct names *names, const char *text)
{
	uint32_t number = names_find(names, text);

	return number == NONE ? names_add(names, keep_text(text, SIZE_MAX)) :
				number;
}

uint32_t names_find(const struct names *names, const char *text)
{
	return names->capacity ? names->slots[find_name(names, text)] - 1 :
				 NONE;
}

void names_free(struct names *names)
{
	free(names->text);
	free(names->slots);
	*names = (struct names){ 0 };
}
