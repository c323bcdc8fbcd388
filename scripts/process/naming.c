/*
 * Names addresses by report/names, which reads ELF files in sandboxes.  Each address is asked
 * for once, and all that are new in one module together.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "names/symbols.h"
#include "process/naming.h"
#include "process/unwind.h"

static struct map known; /* address -> number of its chain */
static struct chain *chains;
static uint32_t chain_count, chain_room;

void naming_want(struct space *space, uint64_t address)
{
	struct module *module;
	struct named *named;

	if (map_add(&known, address, chain_count) != chain_count)
		return;
	GROW(chains, chain_count, chain_room);
	named = allocate(1, sizeof(*named));
	chains[chain_count++] = (struct chain){ named, 1 };
	named->name = keep_format("0x%" PRIx64, address);
	if (address & UNWIND_SIGNAL) {
		named->name = "<signal handler called>"; /* as gdb says */
		named->has_name = true;
		return;
	}
	module = space_module(space, address);
	if (!module)
		return;
	named->object = module->name;
	GROW(module->wanted, module->wanted_count, module->wanted_room);
	module->wanted[module->wanted_count++] = address;
}

/* --- of one module --- */

struct asking {
	struct module *module;
	struct named **named; /* of each address, the outermost first */
	uint64_t **starts;    /* of each of these; 0: it has a name */
	uint32_t *counts, *places;
	uint32_t *rooms;
};

static void take_function(void *context, uint32_t number, uint32_t id,
			  const struct frame_symbol *function)
{
	struct asking *asking = context;
	uint32_t n = asking->counts[number], room = asking->rooms[number];

	(void)id;
	GROW(asking->named[number], n, asking->rooms[number]);
	GROW(asking->starts[number], n, room);
	asking->named[number][n] = (struct named){
		.object = asking->module->name,
		.is_inlined = n > 0,
		.name = function->start ? NULL : demangle(function->name),
		.has_name = !function->start,
	};
	asking->starts[number][n] = function->start;
	asking->counts[number]++;
}

static void take_place(void *context, uint32_t number, const char *file,
		       int line)
{
	struct asking *asking = context;
	uint32_t n = asking->places[number]++;

	if (n >= asking->counts[number])
		return;
	asking->named[number][n].file = file;
	asking->named[number][n].line = line;
}

static int compare_symbols(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;

	return (a->address > b->address) - (a->address < b->address);
}

static int compare_addresses(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Names the functions that begin somewhere. */
static void name_starts(struct asking *asking, uint32_t count)
{
	struct symbol *symbols = NULL, key, *found;
	uint32_t symbol_count = 0, room = 0, i, n, unique = 0;

	for (i = 0; i < count; i++)
		for (n = 0; n < asking->counts[i]; n++) {
			if (!asking->starts[i][n])
				continue;
			GROW(symbols, symbol_count, room);
			symbols[symbol_count++] = (struct symbol){
				.address = asking->starts[i][n]
			};
		}
	if (!symbol_count)
		return;
	qsort(symbols, symbol_count, sizeof(*symbols), compare_symbols);
	for (i = 0; i < symbol_count; i++)
		if (!unique ||
		    symbols[unique - 1].address != symbols[i].address)
			symbols[unique++] = symbols[i];
	symbols_find(&asking->module->object, symbols, unique);
	for (i = 0; i < count; i++)
		for (n = 0; n < asking->counts[i]; n++) {
			key.address = asking->starts[i][n];
			found = key.address ?
					bsearch(&key, symbols, unique,
						sizeof(key), compare_symbols) :
					NULL;
			if (!found || !found->name)
				continue;
			asking->named[i][n].name = found->source_name;
			asking->named[i][n].has_name = true;
		}
	free(symbols);
}

/* The innermost first, and the address where there is no name. */
static void keep_chain(struct named *named, uint32_t count, uint64_t address)
{
	uint32_t number = map_get(&known, address), i;
	struct named swap;

	if (number == NONE || !count)
		return;
	for (i = 0; i < count; i++)
		if (!named[i].name)
			named[i].name = chains[number].functions[0].name;
	for (i = 0; i < count / 2; i++) {
		swap = named[i];
		named[i] = named[count - 1 - i];
		named[count - 1 - i] = swap;
	}
	chains[number] = (struct chain){ named, count };
}

static void name_module(struct module *module)
{
	uint32_t count = module->wanted_count, i;
	uint64_t *addresses = allocate(count, sizeof(*addresses));
	struct asking asking = {
		.module = module,
		.named = allocate(count, sizeof(*asking.named)),
		.starts = allocate(count, sizeof(*asking.starts)),
		.counts = allocate(count, sizeof(*asking.counts)),
		.places = allocate(count, sizeof(*asking.places)),
		.rooms = allocate(count, sizeof(*asking.rooms)),
	};

	qsort(module->wanted, count, sizeof(*module->wanted),
	      compare_addresses);
	for (i = 0; i < count; i++)
		addresses[i] = module->wanted[i] - module->bias;
	symbols_frames(&module->object, addresses, count, take_function,
		       &asking);
	symbols_places(&module->object, addresses, count, take_place, &asking);
	name_starts(&asking, count);
	for (i = 0; i < count; i++) {
		keep_chain(asking.named[i], asking.counts[i],
			   module->wanted[i]);
		free(asking.starts[i]);
	}
	module->wanted_count = 0;
	free(asking.named);
	free(asking.starts);
	free(asking.counts);
	free(asking.places);
	free(asking.rooms);
	free(addresses);
}

void naming_finish(struct space *space)
{
	uint32_t i;

	for (i = 0; i < space->module_count; i++)
		if (space->modules[i].wanted_count)
			name_module(&space->modules[i]);
}

struct chain naming_get(uint64_t address)
{
	return chains[map_get(&known, address)];
}

void naming_forget(void)
{
	map_free(&known);
	known = (struct map){ .count = 0 };
	chain_count = 0;
}
