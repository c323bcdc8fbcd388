/* A map of numbers with open addressing. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"

/* Keys with other low bits have slots side by side, in few cache lines: such keys are often
 * asked for in turn, as the callees of one path. */
static struct map_slot *find_slot(const struct map *map, uint64_t key)
{
	size_t mask = map->capacity - 1;
	size_t i = (hash_mix(key >> 4) + (key & 15)) & mask;

	while (map->slots[i].value && map->slots[i].key != key)
		i = (i + 1) & mask;
	return &map->slots[i];
}

uint32_t map_get(const struct map *map, uint64_t key)
{
	/* An empty slot holds 0.  Minus one, that gives NONE. */
	return map->capacity ? find_slot(map, key)->value - 1 : NONE;
}

static void resize(struct map *map, size_t capacity)
{
	struct map new = { .capacity = capacity, .count = map->count };
	size_t i;

	new.slots = allocate(new.capacity, sizeof(*new.slots));
	for (i = 0; i < map->capacity; i++)
		if (map->slots[i].value)
			*find_slot(&new, map->slots[i].key) = map->slots[i];
	map_free(map);
	*map = new;
}

void map_reserve(struct map *map, size_t count)
{
	size_t capacity = map->capacity ? map->capacity : 64;

	while (capacity / 2 < count)
		capacity *= 2;
	if (capacity > map->capacity)
		resize(map, capacity);
}

/* The slot of @key, or the free slot where @key belongs (its value is 0). */
static struct map_slot *make_slot(struct map *map, uint64_t key)
{
	struct map_slot *slot;

	if (map->count * 2 >= map->capacity)
		resize(map, map->capacity ? map->capacity * 2 : 64);
	slot = find_slot(map, key);
	if (!slot->value) {
		slot->key = key;
		map->count++;
	}
	return slot;
}

uint32_t map_add(struct map *map, uint64_t key, uint32_t value)
{
	struct map_slot *slot = make_slot(map, key);

	if (!slot->value)
		slot->value = value + 1;
	return slot->value - 1;
}

void map_set(struct map *map, uint64_t key, uint32_t value)
{
	make_slot(map, key)->value = value + 1;
}

void map_free(struct map *map)
{
	free(map->slots);
	*map = (struct map){ 0 };
}
