/* Functions whose first instructions were moved (shim/sources). */
#ifndef SHIM_MOVED_CODE_H
#define SHIM_MOVED_CODE_H

#include "runtime/subscribe.h"

#include <stdbool.h>
#include <stdint.h>

/* The code behind the mark at a function's beginning.  Subscribers correct @code if the
 * function's first instructions were moved.  State lock held. */
struct moved_code {
	uintptr_t function;
	uintptr_t code;
	/* The mark is behind code that makes the function's frame. */
	bool is_late;
};
TOPIC(moved_code_wanted, struct moved_code *moved);

#endif
