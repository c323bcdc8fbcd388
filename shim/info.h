/*
 * What shim itself asks about functions.
 */
#ifndef SHIM_INFO_INTERNAL_H
#define SHIM_INFO_INTERNAL_H

#include "helper.h"

/* Asks what debug information says of @function, with its image pinned; see
 * helper_ask. */
enum shim_result info_ask(enum helper_verb verb, shim_function function,
			  void (*use)(const struct debuginfo_answer *answer,
				      void *argument),
			  void *argument);

/* The same of the call of @function that returns to @site: HELPER_CALLSITE. */
enum shim_result
info_ask_callsite(uintptr_t site, shim_function function,
		  void (*use)(const struct debuginfo_answer *answer,
			      void *argument),
		  void *argument);

/* Where the first part of @function ends, or 0 if its image has not been read
 * (info_ask reads). */
uintptr_t info_code_end(shim_function function);

#endif
