/*
 * How the code of an image uses GOT slots that are not for calls only.  A slot that also
 * tells a function's address must stay as it is: the program compares such addresses.
 */
#ifndef SHIM_SLOT_USES_H
#define SHIM_SLOT_USES_H

#include <stdbool.h>
#include <stdint.h>

struct slot_place {
	uintptr_t slot;
	bool is_called; /* also by a register that is used for nothing else */
	bool is_read;
};

/* Fills the answers of @count places, which are sorted by slot, from the code of the image
 * that is mapped at @start.  Code that is no instruction may add to them.  Returns 0 or
 * -errno.  State lock held. */
int slot_uses_find(uintptr_t start, uintptr_t bias, struct slot_place *places,
		   uint32_t count);

#endif
