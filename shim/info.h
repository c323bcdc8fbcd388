/*
 * What shim itself asks about functions.
 */
#ifndef SHIM_INFO_INTERNAL_H
#define SHIM_INFO_INTERNAL_H

#include "decode/decode.h"
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
/* The same, of the call in @function that returns to @site. */
enum shim_result info_ask_at(enum helper_verb verb, shim_function function,
			     uintptr_t site,
			     void (*use)(const struct debuginfo_answer *answer,
					 void *argument),
			     void *argument);

/* Where @function's image is, and what is to be added to addresses in its file;
 * false: it has gone. */
bool info_image(shim_function function, uintptr_t *start, uintptr_t *end,
		uintptr_t *bias);

/* Where the first part of @function ends, or 0 if its image has not been read
 * (info_ask reads). */
uintptr_t info_code_end(shim_function function);

/*
 * What @address belongs to: the name of a function, else of an image's file, cut
 * to @size bytes with its NUL, and how far it is from its start.  With @may_read
 * symbols are read that have not been (which takes what TRIGGERS functions may).
 * False: nothing that is known.
 */
bool info_name_address(uintptr_t address, bool may_read, char *name,
		       size_t size, uint64_t *offset);
/* All parts of it: how many, at most @room. */
uint32_t info_code_ranges(shim_function function, uint32_t room,
			  struct decode_range *ranges);

#endif
