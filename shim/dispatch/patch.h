/*
 * Changing the program's code.  No page of it is ever left writable, and what
 * the program made of its protections stays.
 */
#ifndef SHIM_PATCH_H
#define SHIM_PATCH_H

#include <stddef.h>
#include <stdint.h>

#define PATCH_MAPS 8

struct patch {
	uintptr_t start, end;		/* what may be changed */
	int fd;				/* -1: not, or not any more */
	unsigned map_count;		/* mappings that are writable for now */
	struct patch_map {
		uintptr_t start, end;
		int protection;
	} maps[PATCH_MAPS];
};

/* State lock held from open to close, and nothing loaded or unloaded there. */
void patch_open(struct patch *patch, uintptr_t start, uintptr_t end);

/* Makes the @size bytes at @address those of @bytes.  Only such that differ may
 * be seen to change, each at once.  0 or -errno. */
int patch_write(struct patch *patch, uintptr_t address,
		const unsigned char *bytes, size_t size);

void patch_close(struct patch *patch);

/*
 * Makes the byte at @address what it is in the object's file, @byte, whatever it
 * takes: other changes of that page may go, too.  0, or -EPERM: all was refused.
 * State lock held.
 */
int patch_put_back(uintptr_t address, unsigned char byte);

#endif
