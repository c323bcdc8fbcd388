/*
 * Names addresses by report/names, which reads ELF files in sandboxes.  Each address is
 * looked up once, and the new addresses of a module together.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/short_name.h"
#include "names/symbols.h"
#include "process/naming.h"
#include "process/unwind.h"

static struct map chain_numbers; /* address -> number of its chain */
static struct chain *chains;
static uint32_t chain_count, chain_room;

static enum named_form form;

void naming_choose(enum named_form wanted)
{
	form = wanted;
}

/* @demangled may be NULL, if it was not looked up yet. */
static const char *in_form(const char *name, const char *demangled)
{
	if (form == NAMED_MANGLED)
		return name;
	if (!demangled)
		demangled = demangle(name);
	return form == NAMED_SHORT ? short_name(demangled) : demangled;
}

void naming_want(struct space *space, uint64_t address)
{
	struct module *module;
	struct named *named;

	if (map_add(&chain_numbers, address, chain_count) != chain_count)
		return;
	GROW(chains, chain_count, chain_room);
	named = allocate(1, sizeof(*named));
	chains[chain_count++] = (struct chain){ named, 1 };
	named->name = keep_format("0x%" PRIx64, address);
	if (address & UNWIND_SIGNAL) {
		named->name = "<signal handler called>"; /* as in gdb */
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

struct name_query {
	struct module *module;
	struct named **named; /* of each address, outermost first */
	uint64_t **starts;    /* of each function without a name; otherwise 0 */
	uint32_t *counts, *places;
	uint32_t *rooms;
};

static void store_function(void *context, uint32_t number, uint32_t id,
			   const struct frame_symbol *function)
{
	struct name_query *query = context;
	uint32_t n = query->counts[number], room = query->rooms[number];

	(void)id;
	GROW(query->named[number], n, query->rooms[number]);
	GROW(query->starts[number], n, room);
	query->named[number][n] = (struct named){
		.object = query->module->name,
		.is_inlined = n > 0,
		.name = function->start ? NULL : in_form(function->name, NULL),
		.has_name = !function->start,
	};
	query->starts[number][n] = function->start;
	query->counts[number]++;
}

static void store_line(void *context, uint32_t number, const char *file,
		       int line)
{
	struct name_query *query = context;
	uint32_t n = query->places[number]++;

	if (n >= query->counts[number])
		return;
	query->named[number][n].file = file;
	query->named[number][n].line = line;
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

/* Names the functions by their starts. */
static void name_starts(struct name_query *query, uint32_t count)
{
	struct symbol *symbols = NULL, key, *found;
	uint32_t symbol_count = 0, room = 0, i, n, unique = 0;

	for (i = 0; i < count; i++)
		for (n = 0; n < query->counts[i]; n++) {
			if (!query->starts[i][n])
				continue;
			GROW(symbols, symbol_count, room);
			symbols[symbol_count++] = (struct symbol){
				.address = query->starts[i][n]
			};
		}
	if (!symbol_count)
		return;
	qsort(symbols, symbol_count, sizeof(*symbols), compare_symbols);
	for (i = 0; i < symbol_count; i++)
		if (!unique ||
		    symbols[unique - 1].address != symbols[i].address)
			symbols[unique++] = symbols[i];
	symbols_find(&query->module->object, symbols, unique);
	for (i = 0; i < count; i++)
		for (n = 0; n < query->counts[i]; n++) {
			key.address = query->starts[i][n];
			found = key.address ?
					bsearch(&key, symbols, unique,
						sizeof(key), compare_symbols) :
					NULL;
			if (!found || !found->name)
				continue;
			query->named[i][n].name = in_form(found->name,
							  found->source_name);
			query->named[i][n].has_name = true;
		}
	free(symbols);
}

/* Stores the chain, innermost first; functions without a name get their address. */
static void keep_chain(struct named *named, uint32_t count, uint64_t address)
{
	uint32_t number = map_get(&chain_numbers, address), i;
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
	struct name_query query = {
		.module = module,
		.named = allocate(count, sizeof(*query.named)),
		.starts = allocate(count, sizeof(*query.starts)),
		.counts = allocate(count, sizeof(*query.counts)),
		.places = allocate(count, sizeof(*query.places)),
		.rooms = allocate(count, sizeof(*query.rooms)),
	};

	qsort(module->wanted, count, sizeof(*module->wanted),
	      compare_addresses);
	for (i = 0; i < count; i++)
		addresses[i] = module->wanted[i] - module->bias;
	symbols_frames(&module->object, addresses, count, store_function,
		       &query);
	symbols_places(&module->object, addresses, count, store_line, &query);
	name_starts(&query, count);
	for (i = 0; i < count; i++) {
		keep_chain(query.named[i], query.counts[i], module->wanted[i]);
		free(query.starts[i]);
	}
	module->wanted_count = 0;
	free(query.named);
	free(query.starts);
	free(query.counts);
	free(query.places);
	free(query.rooms);
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
	return chains[map_get(&chain_numbers, address)];
}

void naming_forget(void)
{
	map_free(&chain_numbers);
	chain_numbers = (struct map){ .count = 0 };
	chain_count = 0;
}
