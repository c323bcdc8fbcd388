/*
 * What shim itself asks about functions.
 */
#ifndef SHIM_INFO_INTERNAL_H
#define SHIM_INFO_INTERNAL_H

#include "inspect/decode/decode.h"
#include "inspect/helper.h"
#include "runtime/output.h"

struct image_entry;

/* Asks what debug information says of @function, with its image pinned; see
 * helper_ask. */
enum shim_result info_ask(enum helper_verb verb, shim_function function,
			  void (*use)(const struct debuginfo_answer *answer,
				      void *argument),
			  void *argument);

/* The prototype of the function whose hook returns to @return_address. */
enum shim_result info_ask_prototype(
	shim_function function, uintptr_t return_address,
	void (*use)(const struct debuginfo_answer *answer, void *argument),
	void *argument);

/* Begins a question about @image, which is pinned: of no function. */
void info_describe(const struct image_entry *image,
		   struct debuginfo_question *question);

/* Whether the call of @function that returns to @site is made by code of
 * another object, which has no hooks (libc calls main); then, where the caller
 * begins. */
bool info_is_called_from_outside(uintptr_t site, shim_function function,
				 uintptr_t *caller);

/* The same of the call of @function that returns to @site: HELPER_CALLSITE or
 * HELPER_CALLED. */
enum shim_result
info_ask_callsite(enum helper_verb verb, uintptr_t site, shim_function function,
		  void (*use)(const struct debuginfo_answer *answer,
			      void *argument),
		  void *argument);
/* The same, of the call in @function that returns to @site. */
enum shim_result info_ask_at(enum helper_verb verb, shim_function function,
			     uintptr_t site,
			     void (*use)(const struct debuginfo_answer *answer,
					 void *argument),
			     void *argument);

/*
 * The instance of @function that runs at @ip (0: not known), called from @site: where
 * the function begins whose code it is, and its name as the source has it.
 */
enum shim_result info_tell_instance(shim_function function, uintptr_t ip,
				    uintptr_t site, uintptr_t *code,
				    const struct output *name);

/* Where @function's image is, and what is to be added to addresses in its file;
 * false: it has gone. */
bool info_image(shim_function function, uintptr_t *start, uintptr_t *end,
		uintptr_t *bias);

/* The function of which code that begins at @part is a part, or @part.  Reads symbols
 * the first time: the state lock.  Async. */
uintptr_t info_whole(uintptr_t part);

/* Where the first part of @function ends, or 0 if its image has not been read
 * (info_ask reads). */
uintptr_t info_code_end(shim_function function);

/*
 * What @address belongs to: the name of a function, else of an image's file, cut
 * to @size bytes with its NUL, and how far it is from its start.  With @may_read
 * symbols are read that have not been (which takes what MAY_BLOCK functions may).
 * False: nothing that is known.
 */
bool info_name_address(uintptr_t address, bool may_read, char *name,
		       size_t size, uint64_t *offset);
/* All parts of it: how many, at most @room. */
uint32_t info_code_ranges(shim_function function, uint32_t room,
			  struct decode_range *ranges);

#endif
