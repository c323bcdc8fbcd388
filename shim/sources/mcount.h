/*
 * Calls of mcount (-pg without -mfentry), which follow the code that makes a function's frame:
 * rbp tells the slot of its return address; and calls of __fentry__ (-mfentry), with which
 * functions begin.  A jump to a thunk takes the place of the call.  mcount's work goes on: the
 * thunk does it, whether the mark is on or off.
 */
#ifndef SHIM_MCOUNT_H
#define SHIM_MCOUNT_H

#include "sources/sources.h"

/* Adds the calls of an image that has no other marks for their functions.  The image's marks
 * are sorted.  Returns 0 or -errno. */
int mcount_find(struct source_image *image, source_add *add);

/* Writes the thunk of a mark.  The word at @counter points to the
 * code that does mcount's work for thunks. */
void mcount_put(const struct source_image *image,
		const struct source_mark *mark, unsigned char *thunk,
		const void *slot, const void *counter);

/*
 * @counter does the work of mcount: r11 is the return address of a call of mcount, and all
 * other registers are kept.  @entry_counter does that of __fentry__; the slot of the function's
 * return address is 24 bytes above its stack pointer.  Until they are set, calls stay as they
 * are.
 */
void mcount_set_counters(void (*counter)(void), void (*entry_counter)(void));
/* For arch/.../returns.S */
extern void (*mcount_counter)(void) __attribute__((visibility("hidden")));
extern void (*mcount_entry_counter)(void) __attribute__((visibility("hidden")));

/* Whether the mark is a call of __fentry__. */
bool mcount_is_entry(const struct source_image *image,
		     const struct source_mark *mark);

#endif
