/*
 * Disables and enables all hooks.  The public functions are in <shim/hooks.h>.
 */
#ifndef SHIM_HOOKS_SWITCH_H
#define SHIM_HOOKS_SWITCH_H

#include <stdbool.h>

/* In a forked child: switches the hooks to the parent's state, because the parent may
 * have been changing them.  State lock held. */
void hooks_switch_forked(void);

/* `profrun detach` disables the hooks, and the next attach enables them.  State lock held. */
void hooks_switch_detach(bool begins);

/* The next recording counts the switches from 0.  Called after a detach.  State lock held. */
void hooks_switch_renew(void);

/* Begins or ends a pause.  The first pause disables the hooks, unless the user has.
 * The end of the last pause enables them again. */
void hooks_switch_pause(bool begins);

#endif
