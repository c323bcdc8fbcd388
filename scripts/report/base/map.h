/* A map from uint64_t to uint32_t.  NONE cannot be a value. */
#ifndef REPORT_BASE_MAP_H
#define REPORT_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define NONE UINT32_MAX

/* A map from uint64_t to uint32_t.  NONE cannot be a value. */
struct map {
	uint64_t *keys;
	uint32_t *values; /* value + 1; 0: free slot */
	size_t capacity;  /* 0 or a power of two */
	size_t count;
};

uint32_t map_get(const struct map *map, uint64_t key);
/* Returns the value of @key; a new @key gets @value. */
uint32_t map_add(struct map *map, uint64_t key, uint32_t value);
/* Sets the value of @key and replaces an earlier value. */
void map_set(struct map *map, uint64_t key, uint32_t value);
void map_free(struct map *map);

#endif
