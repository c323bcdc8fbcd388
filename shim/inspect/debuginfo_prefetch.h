/*
 * Debug information that is opened before anybody asks: opening takes longer than
 * any question later, and is better waited for at the start, and in dlopen, than in
 * a hook.
 */
#ifndef SHIM_DEBUGINFO_PREFETCH_H
#define SHIM_DEBUGINFO_PREFETCH_H

#include <stdbool.h>

/* From now on: shim_values_enable. */
void prefetch_enable(void);
bool prefetch_is_on(void);

/* Opens that of the images with hooks that came since.  Takes what helper_ask
 * does, and the state lock, which must not be held. */
void prefetch_look(void);

#endif
