/*
 * The steps of attach.c: the process is opened, a thread stopped, functions called on it, a
 * directory made.  Most of them die with the reason if they fail.
 */
#ifndef PROCESS_STEPS_H
#define PROCESS_STEPS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/others.h"
#include "process/process_memory.h"
#include "process/remote.h"
#include "process/safe.h"
#include "process/target.h"

struct attach {
	struct target target;
	struct process_memory memory;
	struct remote remote;
	struct others others;
	struct others queue; /* threads that wait for @fork_lock */
	uint64_t fork_lock;  /* its address; 0: unknown */
	uint64_t wait_ns;    /* for locks of the process; --wait */
	const char *then;    /* what a call will have done that takes longer */
	struct safe safe;
	struct module libc; /* a copy: mappings are read again */
	struct libc_code code;
	char root[32]; /* the prefix of the process's file names, or "" */
	char directory[PATH_MAX];
	uint64_t stack, stack_size; /* mapped in the process; 0: not yet */
	uint64_t errno_at;	    /* errno of the stopped thread */
	int thread_errno;	    /* its value at the stop */
	uint64_t since;		    /* the thread was asked to stop */
	uint64_t stopped_ns;	    /* the time of that thread */
	unsigned stopped_threads;   /* the most of the others at a time */
	uint64_t
		sleeps_since; /* it makes a call, and fell asleep; 0: it runs */
	uint64_t runs_since;  /* it runs beside others; 0: they are stopped */
	bool has_shared;      /* the others were stopped long enough */
};

/* --- admit.c: the process, and why it is refused --- */

void attach_open(struct attach *attach, int pid, bool is_forced);
/* Ends the exclusion of other profruns. */
void attach_close(struct attach *attach);
void attach_read_mappings(struct attach *attach);
/* The ELF file whose name begins with @prefix, in the linker's list; or NULL. */
const struct module *attach_find_module(const struct attach *attach,
					const char *prefix);
/* Of /proc/PID/status. */
long attach_status_number(const struct attach *attach, const char *key);
/* Dies if one of its threads would not survive a trap of coverage. */
void attach_check_traps(struct attach *attach);
/* Whether it has not ended, or executed another program. */
bool attach_is_same_program(const struct attach *attach);

/* --- stop_safely.c --- */

/* Stops a thread at a safe place. */
void attach_stop(struct attach *attach);
/* A call begins: the others run, until it takes long. */
void attach_share(struct attach *attach);
/* Lets all threads go on. */
void attach_release(struct attach *attach);

/* --- calls.c: on the stopped thread --- */

#define ATTACH_STACK_SIZE (512u << 10) /* above it there are the settings */

_Noreturn void attach_call_failed(struct attach *attach,
				  enum remote_result result);
/* Maps a stack for the calls, and @settings_size bytes above it. */
void attach_map_stack(struct attach *attach, size_t settings_size);
/* Unmaps the stack, and lets all threads go on. */
void attach_finish(struct attach *attach);
/* Opens the library in the process. */
void attach_load(struct attach *attach);
/* Where shim is loaded; 0: it is not. */
uint64_t attach_find_shim(struct attach *attach);
/* What shim is there, of enum shim_attach_state. */
uint32_t attach_read_state(struct attach *attach, uint64_t shim);
/* Tells shim the system call of the thread. */
void attach_send_call(struct attach *attach, uint64_t shim);
/* Calls a function of <shim/attach.h>, and returns its result.  @then: what it will have
 * done if it takes too long. */
int32_t attach_call_shim(struct attach *attach, uint64_t shim, const char *name,
			 uint64_t argument, const char *then);

/* --- fork_lock.c --- */

/* The address of libc's lock that each fork holds; 0: not found. */
uint64_t attach_fork_lock(const struct attach *attach);
/* Waits until no fork holds it. */
void attach_await_forks(struct attach *attach);

/* --- directory.c: of the recording --- */

/* @output: -o; NULL: a name of its own. */
void attach_make_directory(struct attach *attach, const char *output);
/* Provides the library for the process, and removes it when it is loaded. */
void attach_send_library(struct attach *attach, const char *library);
void attach_remove_library(const struct attach *attach);
/* The process's name of that library. */
const char *attach_library(const struct attach *attach);
/* Warns with what shim has logged. */
void attach_print_log(const struct attach *attach);
/* The directory's name for commands that read it from here. */
const char *attach_name_here(const struct attach *attach);
/* Until something is recorded in it, the directory is removed at the end; @attach NULL: from
 * now on it stays. */
void attach_note_unused(const struct attach *attach);

#endif
