/* Queries of shim itself about functions. */
#ifndef SHIM_INFO_INTERNAL_H
#define SHIM_INFO_INTERNAL_H

#include "inspect/decode/decode.h"
#include "inspect/helper.h"
#include "runtime/output.h"

struct image_entry;

/* Queries the debug information of @function, and pins its image meanwhile; see
 * helper_ask. */
enum shim_result info_ask(enum helper_verb verb, shim_function function,
			  void (*use)(const struct debuginfo_answer *answer,
				      void *argument),
			  void *argument);

/* Queries the prototype of the function whose hook returns to @return_address. */
enum shim_result info_ask_prototype(
	shim_function function, uintptr_t return_address,
	void (*use)(const struct debuginfo_answer *answer, void *argument),
	void *argument);

/* Begins a query about @image, which must be pinned.  Sets no function. */
void info_describe(const struct image_entry *image,
		   struct debuginfo_question *question);

/* Whether code of another object without hooks makes the call of @function that returns
 * to @site (libc calls main).  *@caller then receives the start of the caller. */
bool info_is_called_from_outside(uintptr_t site, shim_function function,
				 uintptr_t *caller);

/* Queries the call of @function that returns to @site: HELPER_CALLSITE or
 * HELPER_CALLED.  Results as of info_ask. */
enum shim_result info_ask_callsite(
	enum helper_verb verb, uintptr_t site, shim_function function,
	void (*use)(const struct debuginfo_answer *answer, void *argument),
	void *argument);
/* Queries the call in @function that returns to @site.  Results as of info_ask. */
enum shim_result
info_ask_at(enum helper_verb verb, shim_function function, uintptr_t site,
	    void (*use)(const struct debuginfo_answer *answer, void *argument),
	    void *argument);

/*
 * Finds the instance of @function that runs at @ip (0: unknown) and was called from
 * @site.  Stores the start of the function that has this code, and its name in the
 * source.
 */
enum shim_result info_output_instance(shim_function function, uintptr_t ip,
				      uintptr_t site, uintptr_t *code,
				      const struct output *name);

/* The range of @function's image, and the bias to add to addresses in its file; false
 * if the image was unloaded. */
bool info_image(shim_function function, uintptr_t *start, uintptr_t *end,
		uintptr_t *bias);

/* The function to which the code part at @part belongs, or @part.  The first call reads
 * symbols and takes the state lock.  Async. */
uintptr_t info_whole(uintptr_t part);

/* Copies the linker names of @function, each with its NUL, as far as @size bytes have room;
 * returns the bytes that it has written, 0 without a symbol. */
size_t info_copy_names(shim_function function, char *names, size_t size);

/* The end of the first part of @function; 0 if its image has not been read (info_ask
 * reads it). */
uintptr_t info_code_end(shim_function function);

/*
 * Stores the name of the function at @address, cut to @size bytes with its NUL, and the
 * offset from its start.  Without a function, stores those of the image's file.  With
 * @may_read it reads missing symbols, as MAY_BLOCK functions may.  False if @address is
 * in no known image.
 */
bool info_name_address(uintptr_t address, bool may_read, char *name,
		       size_t size, uint64_t *offset);
/* Stores the parts of @function, at most @room; returns their number. */
uint32_t info_code_ranges(shim_function function, uint32_t room,
			  struct decode_range *ranges);

#endif
