/*
 * The socket for `profrun ctl`, in the recording.  It exists only with SHIM_CONTROL=1.
 *
 * A request is one line, followed by SIZE bytes of data:
 *
 *     shim 1 VERB [SIZE DESCRIPTION]\n
 *     status | start | stop | load SIZE NAME[:ARGUMENTS] | unload 0 NAME | filter 0 LIST
 *
 * The answer is lines of text.  The last line is "result VALUE", a shim_result in
 * decimal.
 */
#ifndef SHIM_CONTROL_H
#define SHIM_CONTROL_H

/* Starts the server.  Called in shim's constructor. */
void control_start(void);
/* Another recording has begun: starts the server, or makes its socket again there within a
 * second. */
void control_renew(void);
/* Removes the socket.  Called when the process ends. */
void control_finish(void);

#endif
