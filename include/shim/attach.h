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

#define SHIM_ATTACH_REASON 512

/* The values of @profrun_attach_state. */
enum shim_attach_state {
	SHIM_ATTACH_NEVER, /* shim was not opened by profrun: it was preloaded */
	SHIM_ATTACH_OPENED, /* profrun has opened the library, and not started it */
	SHIM_ATTACH_RECORDS,  /* shim was attached and records */
	SHIM_ATTACH_DETACHED, /* shim was attached and has been detached */
};

/* What shim is in this process, of enum shim_attach_state; profrun reads it. */
extern uint32_t profrun_attach_state __attribute__((visibility("default")));

/* The bytes that shim had mapped at the last detach, besides its own code and data; profrun
 * reads it. */
extern uint64_t profrun_attach_mapped __attribute__((visibility("default")));

/*
 * The system call that the stopped thread is in since before it was stopped, and in which it
 * goes on: the kernel may end it by a signal, and then only profrun knows its number.  profrun
 * writes it before profrun_attach_start.
 */
struct shim_attach_call {
	uint64_t tid; /* 0: the thread is in no call */
	uint64_t number, arguments[6];
	uint64_t stack_pointer, next; /* the instruction after the call */
};

extern struct shim_attach_call profrun_attach_call
	__attribute__((visibility("default")));

/*
 * profrun_attach_start - starts to record, or continues after a detach
 *
 * After a detach, settings begin another recording, in their directory.  Its profilers and
 * its filter are those of the settings; without them, those of the recording before.
 * Without settings, shim continues the former recording.
 *
 * @settings: strings NAME=VALUE, each with its NUL, then an empty string; the names are
 * those of the variables SHIM_...  shim copies them.  If it fails, it stores the reason in
 * their place, of up to SHIM_ATTACH_REASON bytes, or an empty string.
 *
 * Returns SHIM_OK; SHIM_E_OUTOFMEMORY; SHIM_E_FAIL if shim records already, or if nothing
 * can be recorded;
 * SHIM_E_INVALIDARG if a profiler of the former recording cannot be ended, or cannot have
 * other options.
 */
enum shim_result profrun_attach_start(char *settings);

/*
 * profrun_attach_stop - ends the recording for now
 *
 * All GOT slots and call sites of the program get their former contents, and timers are
 * deleted.  The library stays mapped: threads may be in its functions.
 *
 * Returns SHIM_OK; SHIM_E_FAIL if shim was not attached or does not record.
 */
enum shim_result profrun_attach_stop(void);

#endif
