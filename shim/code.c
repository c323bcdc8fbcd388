#include "code.h"

#include <shim/banned.h>

enum code_leave code_leave_kind(uintptr_t return_address,
				shim_function function, uintptr_t *target)
{
	(void)return_address;
	(void)function;
	*target = 0;
	return CODE_RETURNS;
}
