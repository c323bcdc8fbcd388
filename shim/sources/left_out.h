/* Says in the log how many functions of an object were left out, and why. */
#ifndef SHIM_SOURCES_LEFT_OUT_H
#define SHIM_SOURCES_LEFT_OUT_H

#include <stdint.h>

/* @option: "--patch".  @counts[i] functions were left out for @reasons[i], if there is
 * such a text. */
void left_out_say(const char *option, const char *path,
		  const char *const *reasons, const uint32_t *counts,
		  unsigned count);

/* @count marked functions of the image that begins at @start are not recorded, for the
 * reason @why. */
void left_out_say_marks(uintptr_t start, uint32_t count, const char *why);

#endif
