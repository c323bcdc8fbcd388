/*
 * Changes the program's code.  No page stays writable, and all pages keep the
 * protection that the program has set.
 */
#ifndef SHIM_PATCH_H
#define SHIM_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATCH_MAPS 8

struct patch {
	uintptr_t start, end; /* the range that may be changed */
	int fd;		      /* of /proc/self/mem; -1: none */
	unsigned map_count;   /* mappings that shim has made writable */
	struct patch_map {
		uintptr_t start, end;
		int protection;
	} maps[PATCH_MAPS];
};

/* From patch_open to patch_close, the caller holds the state lock, and no object is
 * loaded or unloaded in the range. */
void patch_open(struct patch *patch, uintptr_t start, uintptr_t end);

/* Copies @size bytes of code from @address.  If another thread may unload it (@may_go), a
 * system call reads it.  Returns 0 or -errno. */
int patch_read(uintptr_t address, unsigned char *bytes, size_t size,
	       bool may_go);

/* A range of code that is read and written at once; empty with @size 0.  @first and @last are the
 * numbers of the first and the last thing that changes in it. */
struct patch_run {
	uint32_t first, last;
	uintptr_t start;
	size_t size;
};

/* To read and write so many bytes, which are in no cache, takes as long as another call of the
 * system.  Pages in which nothing changes are not written: the kernel would copy them. */
#define PATCH_RUN_GAP  1024u
#define PATCH_RUN_ROOM (64u << 10) /* the longest run */

/* Adds @size bytes at @address, with the next higher number, to the run; false: it is empty, or
 * they are too far away. */
static inline bool patch_run_extend(struct patch_run *run, uint32_t number,
				    uintptr_t address, size_t size)
{
	uintptr_t last = run->start + run->size - 1;

	if (run->size == 0 || address - last > PATCH_RUN_GAP ||
	    address + size - run->start > PATCH_RUN_ROOM)
		return false;
	run->last = number;
	run->size = address + size - run->start;
	return true;
}

/* Copies @size bytes to @address.  Equal bytes stay untouched; each other byte changes
 * with one store.  Returns 0 or -errno. */
int patch_write(struct patch *patch, uintptr_t address,
		const unsigned char *bytes, size_t size);

/* Whether processors fetch four bytes at @address at once: they lie in one line of the cache. */
static inline bool patch_is_one_store(uintptr_t address)
{
	return address / 64 == (address + 3) / 64;
}

/* Changes the four bytes at @address by one store.  The code is writable until
 * patch_close: the kernel's own store may be several.  Returns 0 or -errno. */
int patch_store(struct patch *patch, uintptr_t address, uint32_t word);

/* Changes the two bytes at @address, which is even, by one store, as patch_store() does. */
int patch_store_pair(struct patch *patch, uintptr_t address,
		     const unsigned char *bytes);

void patch_close(struct patch *patch);

/*
 * Restores the byte at @address to @byte, its value in the object's file.  If nothing
 * else works, it drops the page, and other changes of that page are lost.  Returns 0;
 * -EPERM if the kernel refuses all ways.  State lock held.
 */
int patch_put_back(uintptr_t address, unsigned char byte);

#endif
