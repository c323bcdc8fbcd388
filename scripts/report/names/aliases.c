/*
 * Chooses one of a function's names.  Compilers and linkers give one address
 * several names: aliases, complete and base objects, folded copies.  Call sites
 * show which name the source uses: calls from other objects in relocations of
 * linkage tables, calls from other source files in debug information.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "names/aliases.h"
#include "names/symbols.h"

struct choosing {
	struct symbol *symbols;
	const struct names *called;
};

/* Chooses the first name in the table that call sites use. */
static void choose(void *context, uint32_t number, const char *name,
		   const char *source_name)
{
	struct choosing *choosing = context;
	struct symbol *symbol = &choosing->symbols[number];

	if (!symbol->has_others || names_find(choosing->called, name) == NONE)
		return;
	symbol->name = name;
	symbol->source_name = source_name;
	symbol->has_others = false; /* chosen */
}

void aliases_choose(struct object *object, struct symbol *symbols, size_t count,
		    const struct names *called)
{
	struct choosing choosing = { symbols, called };
	uint64_t *addresses = allocate(count, sizeof(*addresses));
	size_t i;

	for (i = 0; i < count; i++)
		addresses[i] = symbols[i].address;
	symbols_names_at(object, addresses, (uint32_t)count, choose, &choosing);
	free(addresses);
}
