/*
 * The decoder's answers about the functions of an image (unmarked.h), which the processes of
 * a run share.
 *
 * At a start, SHIM_PATCH spends most time on decoding all code of the image: half a second for a
 * compiler.  A script or a build executes the same programs many times.  So the first
 * process writes the answers into a directory of the recording (SHIM_DECODED_DIRECTORY).
 */
#ifndef SHIM_DECODED_H
#define SHIM_DECODED_H

#include <stdbool.h>
#include <stdint.h>

struct decode_entries;
struct image_entry;

/* Names all that the answers depend on; 0: this run shares no answers. */
typedef uint64_t decoded_key;

/* @question is complete, but for the bits.  State lock held, here and below. */
decoded_key decoded_key_of(const struct image_entry *image,
			   const struct decode_entries *question);

/* Fills in the answers; false: there are none, and nothing has changed. */
bool decoded_read(decoded_key key, const struct decode_entries *question);

/* Others may fail to write the same file, or to read it; then they decode. */
void decoded_write(decoded_key key, const struct decode_entries *question);

#endif
