/*
 * Changes the program's code.  No page stays writable, and all pages keep the
 * protection that the program has set.
 */
#ifndef SHIM_PATCH_H
#define SHIM_PATCH_H

#include <stddef.h>
#include <stdint.h>

#define PATCH_MAPS 8

struct patch {
	uintptr_t start, end; /* the range that may be changed */
	int fd;		      /* of /proc/self/mem; -1: not used */
	unsigned map_count;   /* mappings that are writable for now */
	struct patch_map {
		uintptr_t start, end;
		int protection;
	} maps[PATCH_MAPS];
};

/* From open to close, the state lock is held and no object is loaded or unloaded
 * in the range. */
void patch_open(struct patch *patch, uintptr_t start, uintptr_t end);

/* Copies @size bytes to @address.  Other threads see only bytes change that differ,
 * each at once.  Returns 0 or -errno. */
int patch_write(struct patch *patch, uintptr_t address,
		const unsigned char *bytes, size_t size);

void patch_close(struct patch *patch);

/*
 * Restores the byte at @address to @byte, its value in the object's file, by all
 * means: other changes of that page may be lost.  Returns 0, or -EPERM if the kernel
 * refuses all ways.  State lock held.
 */
int patch_put_back(uintptr_t address, unsigned char byte);

#endif
