/*
 * The memory map of the process, read from /proc/self/maps.  It needs no lock
 * of the program or its loader, so it can be read at any moment.  There is one
 * buffer: the caller holds the state lock.
 */
#ifndef SHIM_MAPS_H
#define SHIM_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct map {
	uintptr_t start, end;
	bool readable, writable, executable, shared;
	uint64_t offset;
	uint64_t device, inode;
	const char *path; /* "" for anonymous memory */
};

/* Calls @each for every mapping until @each returns false.  Returns 0 or -errno. */
int maps_read(bool (*each)(const struct map *map, void *argument),
	      void *argument);

/* The same for the mappings in the addresses from @start to @end, without reading the others.
 * After an error maps_read() may still read them. */
int maps_read_range(uintptr_t start, uintptr_t end,
		    bool (*each)(const struct map *map, void *argument),
		    void *argument);

/* Stores the bounds of the mapping that contains @address, whether it is executable, and
 * its name, without reading the other mappings.  Returns 0 or -errno.  After an error
 * maps_read() may still find the mapping. */
int maps_find(uintptr_t address, uintptr_t *low, uintptr_t *high,
	      bool *executable, char name[64]);

#endif
