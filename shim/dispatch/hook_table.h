/*
 * Who is called on enter and leave.
 *
 * The program's calls end in two exported symbols that jump through the table
 * (arch/.../entry.S).  That jump costs a quarter of an empty hook, so where an
 * image reaches those symbols through a slot of its own, the slot is pointed at
 * the hook itself and the jump is gone.
 */
#ifndef SHIM_HOOK_TABLE_H
#define SHIM_HOOK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An image in memory, as far as binding needs it. */
struct table_image {
	uintptr_t bias;
	uintptr_t dynamic;
	size_t dynamic_size;
	uintptr_t relro;
	size_t relro_size;
	/* Another thread may unload it while we look: do not touch it. */
	bool may_go;
};

/* Ends the time in which a hooked call starts shim: it leads to nothing, until
 * table_point.  State lock held. */
void table_start(void);
/* Points the table and all bound slots at these hooks; NULL is nothing. */
void table_point(void *enter, void *leave);
/* What a call leads to; NULL until shim has started. */
void *table_hook(bool leaves);
/* In a forked child: another thread of the parent may have been half-way
 * through the slots. */
void table_forked(void);

/* Remembers the slots of an image and points them at the hooks. */
void table_bind(const struct table_image *image);
/* The slots in an address range: stores as many as there is room for and returns
 * how many it stored. */
unsigned table_slots(uintptr_t start, uintptr_t end, uintptr_t *places,
		     unsigned room);
/* The program opens an object that asks what came with it first (RTLD_DEEPBIND).
 * From now on the loader decides where slots of such objects lead. */
void table_opens_deep(void);
/* Forgets the slots in an address range that is gone. */
void table_unbind(uintptr_t start, uintptr_t end);

#endif
