/* One list, and a map from object and address to the place in it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "model/known_functions.h"
#include "model/model.h"
#include "names/symbols.h"

/* Addresses in files are smaller. */
#define ADDRESS_BITS 44

static struct names objects;
static struct map numbers;
static struct known_function *functions;
static uint32_t count, room;
static uint32_t looks;
static bool is_kept;

void known_functions_begin(void)
{
	is_kept = true;
}

void known_functions_look_again(void)
{
	looks++;
}

static bool key_of(uint32_t object, uint64_t address, uint64_t *key)
{
	*key = (uint64_t)object << ADDRESS_BITS | address;
	return object < 1u << (64 - ADDRESS_BITS) &&
	       address < 1ull << ADDRESS_BITS;
}

static struct known_function *find(const char *object, uint64_t address)
{
	uint32_t number = names_find(&objects, object);
	uint64_t key;

	if (number == NONE || !key_of(number, address, &key))
		return NULL;
	number = map_get(&numbers, key);
	return number == NONE ? NULL : &functions[number];
}

struct known_function *known_functions_find(const struct object *object,
					    uint64_t address)
{
	return is_kept && object ? find(object->key, address) : NULL;
}

void known_functions_add(const struct known_function *function)
{
	struct known_function *known = find(function->object,
					    function->address);
	uint64_t key;

	if (known) {
		*known = *function;
		known->look = looks;
		return;
	}
	if (!key_of(names_add(&objects, function->object), function->address,
		    &key))
		return;
	GROW(functions, count, room);
	map_set(&numbers, key, count);
	functions[count] = *function;
	functions[count++].look = looks;
}

void known_functions_add_line(struct known_function *known, const char *file,
			      int line)
{
	known->has_line = known->is_new = true;
	known->file = file;
	known->line = line;
}

/* Files come and go: names that were not found are looked for again, ever less often. */
static bool is_due(const struct known_function *known)
{
	uint32_t age = looks - known->look;

	return !known->name && age > 0 && (age & (age - 1)) == 0;
}

void known_functions_find_symbols(struct object *object, struct symbol *symbols,
				  uint32_t symbol_count)
{
	struct symbol *unknown;
	uint32_t i, n = 0;

	if (!is_kept) {
		symbols_find(object, symbols, symbol_count);
		return;
	}
	unknown = allocate(symbol_count, sizeof(*unknown));
	for (i = 0; i < symbol_count; i++) {
		const struct known_function *known = known_functions_find(
			object, symbols[i].address);

		if (known && !is_due(known)) {
			symbols[i].name = known->name;
			symbols[i].source_name = known->source_name;
		} else {
			unknown[n++] = symbols[i];
		}
	}
	if (n)
		symbols_find(object, unknown, n);
	for (i = symbol_count; i-- > 0 && n > 0;)
		if (unknown[n - 1].address == symbols[i].address)
			symbols[i] = unknown[--n];
	free(unknown);
}

void known_functions_keep(const struct model *model)
{
	uint32_t i;

	for (i = 0; is_kept && i < model->function_count; i++) {
		const struct function *function = &model->functions[i];
		const struct known_function *known;

		if (!function->object || function->group ||
		    function->is_inlined)
			continue;
		known = known_functions_find(function->object,
					     function->address);
		if (known && (known->name || !function->is_named))
			continue;
		known_functions_add(&(struct known_function){
			.object = function->object->key,
			.address = function->address,
			.name = function->is_named ? function->mangled : NULL,
			.source_name = function->is_named ? function->name :
							    NULL,
			.is_new = true,
		});
	}
}

uint32_t known_functions_count(void)
{
	return count;
}

const struct known_function *known_functions_at(uint32_t number)
{
	return &functions[number];
}
