/*
 * Functions of libraries whose calls follow the calling convention, because other objects
 * call them; and prototypes of libc's frequent ones, which often have no debug information.
 */
#ifndef SHIM_KNOWN_H
#define SHIM_KNOWN_H

#include "inspect/helper.h"

#include <stdbool.h>
#include <stdint.h>

/* Other objects call the function @function by @name.  State lock held. */
void known_add(uintptr_t function, const char *name);

/* Whether known_add has had the function.  State lock held. */
bool known_has(uintptr_t function);

/*
 * The answer to HELPER_PROTOTYPE or HELPER_SIGNATURE about a function with a prototype
 * here: calls take(answer, argument), as helper_ask does, with the state lock held.  False
 * if there is none.
 */
bool known_answer(enum helper_verb verb, uintptr_t function,
		  void (*take)(const struct debuginfo_answer *answer,
			       void *argument),
		  void *argument);

#endif
