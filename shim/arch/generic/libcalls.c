/*
 * Library calls are not known on this processor.
 */
#include "sources/libcall_code.h"

#include <shim/banned.h>

bool libcall_is_known(void)
{
	return false;
}

void libcall_put(unsigned char *thunk, const void *entry,
		 const struct libcall_target *target)
{
	(void)thunk, (void)entry, (void)target;
}

enum slot_use slot_use_at(const unsigned char *code, uintptr_t address,
			  uintptr_t *slot)
{
	(void)code, (void)address;
	*slot = 0;
	return SLOT_NOT_USED;
}
