/*
 * A map of numbers with open addressing.  Keys are in one array and values in
 * another; value 0 marks a free slot.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"

static size_t find_slot(const struct map *map, uint64_t key)
{
	size_t mask = map->capacity - 1, i = hash_mix(key) & mask;

	while (map->values[i] && map->keys[i] != key)
		i = (i + 1) & mask;
	return i;
}

uint32_t map_get(const struct map *map, uint64_t key)
{
	/* An empty slot holds 0.  Minus one, that gives NONE. */
	return map->capacity ? map->values[find_slot(map, key)] - 1 : NONE;
}

static void map_grow(struct map *map)
{
	struct map new = { .capacity = map->capacity ? map->capacity * 2 : 64,
			   .count = map->count };
	size_t i, slot;

	new.keys = allocate(new.capacity, sizeof(*new.keys));
	new.values = allocate(new.capacity, sizeof(*new.values));
	for (i = 0; i < map->capacity; i++) {
		if (!map->values[i])
			continue;
		slot = find_slot(&new, map->keys[i]);
		new.keys[slot] = map->keys[i];
		new.values[slot] = map->values[i];
	}
	map_free(map);
	*map = new;
}

/* The slot of @key, or the free slot where @key belongs (its value is 0). */
static size_t make_slot(struct map *map, uint64_t key)
{
	size_t slot;

	if (map->count * 2 >= map->capacity)
		map_grow(map);
	slot = find_slot(map, key);
	if (!map->values[slot]) {
		map->keys[slot] = key;
		map->count++;
	}
	return slot;
}

uint32_t map_add(struct map *map, uint64_t key, uint32_t value)
{
	size_t slot = make_slot(map, key);

	if (!map->values[slot])
		map->values[slot] = value + 1;
	return map->values[slot] - 1;
}

void map_set(struct map *map, uint64_t key, uint32_t value)
{
	/* map_reserve() may move the values */
	size_t slot = make_slot(map, key);

	map->values[slot] = value + 1;
}

void map_free(struct map *map)
{
	free(map->keys);
	free(map->values);
	*map = (struct map){ 0 };
}
