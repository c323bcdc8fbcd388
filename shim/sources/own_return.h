/*
 * Functions that read their own return address, as by __builtin_return_address(0).  They would
 * find that of shim (returns.h), so marks without ends leave them out.
 */
#ifndef SHIM_OWN_RETURN_H
#define SHIM_OWN_RETURN_H

#include <stdbool.h>
#include <stdint.h>

struct source_image;

/* Come before and after the questions about an image.  State lock held, here and below. */
void own_return_begin(const struct source_image *image);
void own_return_end(void);

/* Whether the code of @function, or of a function that it ends with a jump to, may load or
 * compare its return address.  False if the unwind table does not tell where that is; true if
 * there is no memory to find out. */
bool own_return_is_read(uintptr_t function);

/* Says in the log that @count functions of the image were left out for that. */
void own_return_say(const struct source_image *image, uint32_t count);

#endif
