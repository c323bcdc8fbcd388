/*
 * What shim itself asks about functions.
 */
#ifndef SHIM_INFO_INTERNAL_H
#define SHIM_INFO_INTERNAL_H

#include "helper.h"

#include <stdbool.h>

/* Asks what debug information says of @function, with its image pinned; see
 * helper_ask. */
enum shim_result info_ask(enum helper_verb verb, shim_function function,
			  void (*use)(const struct debuginfo_answer *answer,
				      void *argument),
			  void *argument);

/* Both know what was read before (info_ask reads): where the first part of
 * @function ends, or 0; and whether @address lies in one of its parts. */
uintptr_t info_code_end(shim_function function);
bool info_is_part(shim_function function, uintptr_t address);

#endif
