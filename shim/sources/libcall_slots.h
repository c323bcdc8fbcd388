/*
 * The imports of an image whose calls are recorded: which ones the list chooses, and what
 * the calls reach.
 */
#ifndef SHIM_LIBCALL_SLOTS_H
#define SHIM_LIBCALL_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_entry;

struct libcall {
	uintptr_t slot;
	uintptr_t function; /* as profilers know it */
	uintptr_t target;   /* the code that calls reach without shim's thunk */
	uint8_t is_relro : 1;
	uint8_t is_filtered : 1;
	uint8_t is_throttled : 1;
	uint8_t is_on : 1; /* the slot leads to the thunk */
};

struct libcall_image {
	uintptr_t start, end, bias;
	uintptr_t dynamic, relro;
	size_t dynamic_size, relro_size;
	/* Another thread may unload the image at any time: read it by system calls. */
	bool may_go;
	bool is_searched;
	bool is_unwritable;
	bool is_confirmed; /* a forked child has it, too */
	bool is_changed;   /* slots may differ from what they shall be */
	struct libcall *calls;
	uint32_t count, room;
	uint32_t unbound;	     /* imports that the loader had not found */
	uintptr_t code;		     /* the thunks; 0: none */
	struct libcall_slots *slots; /* behind them: what they use */
	size_t size;		     /* of both */
};

/* Finds the slots of calls that SHIM_LIBCALLS chooses, sorted by slot, and says in the log
 * which calls it leaves alone.  Returns 0 or -errno.  State lock held. */
int libcall_slots_find(struct libcall_image *image,
		       const struct image_entry *entry);
void libcall_slots_drop(struct libcall_image *image);

/* The value of a slot; 0 if it cannot be read. */
uintptr_t libcall_slots_read(const struct libcall_image *image, uintptr_t slot);

#endif
