/* uint64_t -> uint32_t; NONE is not a value. */
#ifndef REPORT_BASE_MAP_H
#define REPORT_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define NONE UINT32_MAX

/* uint64_t -> uint32_t; NONE is not a value. */
struct map {
	uint64_t *keys;
	uint32_t *values; /* value + 1; 0: free */
	size_t capacity;  /* 0 or a power of two */
	size_t count;
};

uint32_t map_get(const struct map *map, uint64_t key);
/* The value of @key, which is @value from now on if it had none. */
uint32_t map_add(struct map *map, uint64_t key, uint32_t value);
/* Gives @key that value, whatever it had. */
void map_set(struct map *map, uint64_t key, uint32_t value);
void map_free(struct map *map);

#endif
