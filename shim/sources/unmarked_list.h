/*
 * What becomes of the functions that SHIM_PATCH chooses: a line of the log for each
 * object; and for `profrun doctor --patch`, a line for each function in the file
 * SHIM_LISTED_FILE of the recording.
 */
#ifndef SHIM_UNMARKED_LIST_H
#define SHIM_UNMARKED_LIST_H

#include "inspect/decode/decode.h"

struct image_entry;

/* The decoder has answered.  State lock held. */
void unmarked_list(const struct image_entry *image,
		   const struct decode_entries *question);

#endif
