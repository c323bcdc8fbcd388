/*
 * Stopping and starting all calls of the hooks; what users see of it is in
 * <shim/hooks.h>.
 */
#ifndef SHIM_HOOKS_SWITCH_H
#define SHIM_HOOKS_SWITCH_H

#include <stdbool.h>

/* In a forked child: calls are stopped or not as they were in the parent, which
 * may have been about to change that.  State lock held. */
void hooks_switch_forked(void);

/* Stops them, unless the user has; the last of as many ends of that starts them. */
void hooks_switch_pause(bool begins);

#endif
