/*
 * The hooks that run on enter and leave.
 *
 * The program's calls reach two exported symbols that jump through the table
 * (arch/.../entry.S).  That jump costs a quarter of an empty hook.  If an image
 * reaches the symbols through GOT slots, shim points the slots at the hooks, which
 * saves the jump.
 */
#ifndef SHIM_HOOK_TABLE_H
#define SHIM_HOOK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The properties of an image that binding needs. */
struct hook_table_image {
	uintptr_t bias;
	uintptr_t dynamic;
	size_t dynamic_size;
	uintptr_t relro;
	size_t relro_size;
	/* Another thread may unload it at any time: read it by system calls only. */
	bool may_go;
};

/* From now on a hooked call no longer starts shim; it does nothing until
 * hook_table_point.  State lock held. */
void hook_table_start(void);
/* Points the table and all bound slots at these hooks; NULL: an empty hook. */
void hook_table_point(void *enter, void *leave);
/* The hook that calls reach; NULL until shim has started. */
void *hook_table_hook(bool leaves);
/* In a forked child: points all slots again, since another thread of the parent may
 * have been doing that. */
void hook_table_forked(void);

/* Stores the slots of an image and points them at the hooks. */
void hook_table_bind(const struct hook_table_image *image);
/* Stores the slots in an address range, at most @room; returns how many. */
unsigned hook_table_slots(uintptr_t start, uintptr_t end, uintptr_t *places,
			  unsigned room);
/* The program opens an object with RTLD_DEEPBIND, which searches the object's own
 * dependencies first.  From now on, shim leaves unresolved slots of objects that may be
 * unloaded to the loader. */
void hook_table_opens_deep(void);
/* Forgets the slots in an address range that was unmapped. */
void hook_table_unbind(uintptr_t start, uintptr_t end);

#endif
