/*
 * How `profrun attach` starts shim in a program that runs without it.
 *
 * profrun makes the process call dlopen, and then one of these functions, on a thread
 * that holds no lock of libc.  The library's file name begins with SHIM_ATTACH_NAME, so
 * its constructor does nothing.  Not installed: programs do not call these functions.
 */
#ifndef SHIM_ATTACH_H
#define SHIM_ATTACH_H

#include <shim/shim.h>

#define SHIM_ATTACH_NAME "libshim-attach."

/* The values of @profrun_attach_state. */
enum shim_attach_state {
	SHIM_ATTACH_NEVER, /* shim was not opened by profrun: it was preloaded */
	SHIM_ATTACH_OPENED, /* profrun has opened the library, and not started it */
	SHIM_ATTACH_RECORDS,  /* shim was attached and records */
	SHIM_ATTACH_DETACHED, /* shim was attached and has been detached */
};

/* What shim is in this process, of enum shim_attach_state; profrun reads it. */
extern uint32_t profrun_attach_state __attribute__((visibility("default")));

/*
 * profrun_attach_start - starts to record, or continues after a detach
 *
 * After a detach, settings begin another recording, in their directory; the profilers and
 * the filter stay.  Without settings, shim continues the former recording.
 *
 * @done: set to 1 at the end.  The function then returns when profrun has set it to
 * another value, at the latest after a second.
 * @settings: strings NAME=VALUE, each with its NUL, then an empty string; the names are
 * those of the variables SHIM_...  shim copies them.
 *
 * Returns SHIM_OK; SHIM_E_OUTOFMEMORY; SHIM_E_FAIL if shim records already, or if nothing
 * can be recorded (the file "log" in the recording's directory has the reason).
 */
enum shim_result profrun_attach_start(uint32_t *done, const char *settings);

/*
 * profrun_attach_stop - ends the recording for now
 *
 * All GOT slots and call sites of the program get their former contents, and timers are
 * deleted.  The library stays mapped: threads may be in its functions.  @done is as for
 * profrun_attach_start.
 *
 * Returns SHIM_OK; SHIM_E_FAIL if shim was not attached or does not record.
 */
enum shim_result profrun_attach_stop(uint32_t *done);

#endif
