/*
 * The objects the program has loaded: recorded when they come and when they go,
 * so that the report can name every address whatever was there later.
 */
#ifndef SHIM_IMAGE_H
#define SHIM_IMAGE_H

#include <stdbool.h>

/* Compares what is loaded with what is known; records the difference, binds
 * the hooks of what is new, and raises image_unloaded for what is gone.  State
 * lock held. */
int image_scan(void);

/* The same for who does not hold the lock. */
void image_look_again(void);

/* Around dlclose: 1 before, 0 after.  Between the two an address may already
 * belong to what another thread has just loaded. */
void image_closing(int begins);
/* Is someone between the two?  State lock held: whoever wants to begin waits. */
bool image_is_closing(void);

/* In a forked child: writes all of them into its own recording. */
void image_forked(void);

#endif
