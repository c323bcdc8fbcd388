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
struct hook_table_image {
	uintptr_t bias;
	uintptr_t dynamic;
	size_t dynamic_size;
	uintptr_t relro;
	size_t relro_size;
	/* Another thread may unload it while we look: do not touch it. */
	bool may_go;
};

/* Ends the time in which a hooked call starts shim: it leads to nothing, until
 * hook_table_point.  State lock held. */
void hook_table_start(void);
/* Points the table and all bound slots at these hooks; NULL is nothing. */
void hook_table_point(void *enter, void *leave);
/* What a call leads to; NULL until shim has started. */
void *hook_table_hook(bool leaves);
/* In a forked child: another thread of the parent may have been half-way
 * through the slots. */
void hook_table_forked(void);

/* Remembers the slots of an image and points them at the hooks. */
void hook_table_bind(const struct hook_table_image *image);
/* The slots in an address range: stores as many as there is room for and returns
 * how many it stored. */
unsigned hook_table_slots(uintptr_t start, uintptr_t end, uintptr_t *places,
		     unsigned room);
/* The program opens an object that asks what came with it first (RTLD_DEEPBIND).
 * From now on the loader decides where slots of such objects lead. */
void hook_table_opens_deep(void);
/* Forgets the slots in an address range that is gone. */
void hook_table_unbind(uintptr_t start, uintptr_t end);

#endif
