/*
 * Disables and enables all hooks.  The public functions are in <shim/hooks.h>.
 */
#ifndef SHIM_HOOKS_SWITCH_H
#define SHIM_HOOKS_SWITCH_H

#include <stdbool.h>

/* In a forked child: switches the hooks as they were in the parent, which may have
 * been changing that.  State lock held. */
void hooks_switch_forked(void);

/* Disables the hooks unless the user has.  Pauses nest: the end of the last one enables
 * the hooks that they have disabled. */
void hooks_switch_pause(bool begins);

#endif
