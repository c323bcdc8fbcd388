/*
 * The table of the hooks that run on enter and leave.
 *
 * The program's calls reach two exported symbols that jump through the table
 * (arch/.../dispatch.S).  That jump costs a quarter of an empty hook.  If an image
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
	uintptr_t end; /* pages up to here may be read ahead; 0: none */
	uintptr_t dynamic;
	size_t dynamic_size;
	uintptr_t relro;
	size_t relro_size;
	/* Another thread may unload the image at any time: read it by system calls. */
	bool may_go;
};

/* Points the table at empty hooks.  From now on a hooked call no longer starts shim.
 * State lock held. */
void hook_table_start(void);
/* Points the table and all bound slots at these hooks; NULL: an empty hook. */
void hook_table_point(void *enter, void *leave);
/* The hook that calls reach; NULL until shim has started. */
void *hook_table_hook(bool leaves);
/* In a forked child: points all slots again, because another thread of the parent may
 * have been changing them. */
void hook_table_forked(void);

/* Stores the slots of an image and points them at the hooks. */
void hook_table_bind(const struct hook_table_image *image);
/* Stores the addresses of at most @room slots in [@start, @end) in @places; returns
 * their number. */
unsigned hook_table_slots(uintptr_t start, uintptr_t end, uintptr_t *places,
			  unsigned room);
/* The same for slots through which code compiled with -pg calls mcount, not only shim's; or
 * @is_entry: __fentry__. */
unsigned hook_table_mcount_slots(uintptr_t start, uintptr_t end, bool is_entry,
				 uintptr_t *places, unsigned room);
/* Whether any object calls one.  No section of a file tells that.  Async. */
bool hook_table_has_mcount(void);
/* The program opens an object with RTLD_DEEPBIND: the loader searches the object's own
 * dependencies first.  From now on, shim does not change unresolved slots of objects
 * that may be unloaded. */
void hook_table_opens_deep(void);
/* Removes the slots in an address range that was unmapped. */
void hook_table_unbind(uintptr_t start, uintptr_t end);

#endif
