/*
 * The door for `profrun ctl`: a socket in the recording, open only where
 * SHIM_CONTROL=1 asked for it.
 *
 * A request is one line, then as many bytes as it says:
 *
 *     shim 1 VERB [SIZE DESCRIPTION]\n
 *     status | start | stop | load SIZE NAME[:ARGUMENTS] | unload 0 NAME
 *
 * The answer is lines of text, and last "result VALUE", a shim_result in
 * decimal.
 */
#ifndef SHIM_CONTROL_H
#define SHIM_CONTROL_H

/* From our constructor. */
void control_start(void);
/* The process ends. */
void control_finish(void);

#endif
