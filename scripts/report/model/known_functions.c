/* One list, and a map from object and address to the place in it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "model/known_functions.h"
#include "names/symbols.h"

/* Addresses in files are smaller. */
#define ADDRESS_BITS 44

static struct names objects;
static struct map numbers;
static struct known_function *functions;
static uint32_t count, room;
static bool is_kept;

void known_functions_begin(void)
{
	is_kept = true;
}

bool known_functions_are_kept(void)
{
	return is_kept;
}

const char *known_object_key(const struct object *object)
{
	char id[2 * 64 + 1] = ""; /* read_image() accepts at most this length */
	uint32_t i;

	for (i = 0; i < object->build_id_size && i < 64; i++)
		snprintf(id + 2 * i, 3, "%02x", object->build_id[i]);
	return keep_format("%s/%s", id, object->path);
}

static bool key_of(uint32_t object, uint64_t address, uint64_t *key)
{
	*key = (uint64_t)object << ADDRESS_BITS | address;
	return object < 1u << (64 - ADDRESS_BITS) &&
	       address < 1ull << ADDRESS_BITS;
}

struct known_function *known_functions_find(const char *object,
					    uint64_t address)
{
	uint32_t number = names_find(&objects, object);
	uint64_t key;

	if (number == NONE || !key_of(number, address, &key))
		return NULL;
	number = map_get(&numbers, key);
	return number == NONE ? NULL : &functions[number];
}

void known_functions_add(const struct known_function *function)
{
	struct known_function *known = known_functions_find(function->object,
							    function->address);
	uint64_t key;

	if (known) {
		*known = *function;
		return;
	}
	if (!key_of(names_add(&objects, function->object), function->address,
		    &key))
		return;
	GROW(functions, count, room);
	map_set(&numbers, key, count);
	functions[count++] = *function;
}

uint32_t known_functions_count(void)
{
	return count;
}

const struct known_function *known_functions_at(uint32_t number)
{
	return &functions[number];
}
