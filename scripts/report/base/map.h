/* A map from uint64_t to uint32_t.  NONE cannot be a value. */
#ifndef REPORT_BASE_MAP_H
#define REPORT_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define NONE UINT32_MAX

struct map_slot {
	uint64_t key;
	uint32_t value; /* value + 1; 0: the slot is free */
};

struct map {
	struct map_slot *slots;
	size_t capacity; /* 0 or a power of two */
	size_t count;
};

/* Makes room for @count keys in all, which are added faster then. */
void map_reserve(struct map *map, size_t count);

uint32_t map_get(const struct map *map, uint64_t key);
/* Returns the value of @key; a new @key gets @value. */
uint32_t map_add(struct map *map, uint64_t key, uint32_t value);
/* Sets the value of @key and replaces an earlier value. */
void map_set(struct map *map, uint64_t key, uint32_t value);
void map_free(struct map *map);

#endif
