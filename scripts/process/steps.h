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
#include "process/priority.h"
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
	struct priority priority;   /* of this profrun, before attach_stop() */
	uint64_t since;		    /* the thread was asked to stop */
	uint64_t stopped_ns;	    /* the time of that thread */
	unsigned stopped_threads;   /* the most of the others at a time */
	/* Of the call that the thread makes: */
	uint64_t sleeps_since; /* it fell asleep; 0: it runs */
	uint64_t runs_since;   /* it runs beside others; 0: they are stopped */
	bool has_shared;       /* the others were stopped long enough */
	uint64_t stopped_before; /* and how long at the end of a rest */
	uint64_t rest_ends;	 /* then they may be stopped again */
	/* Of processes with very many threads: */
	bool has_many;	 /* the process has them */
	bool is_crowded; /* more of its threads run than there are processors */
	uint64_t awaited;   /* a lock that is wanted; 0: unknown */
	pid_t holder;	    /* the thread that has it; 0: unknown */
	uint64_t turn_ends; /* then those are stopped again that were let go */
	unsigned turns;	    /* for that lock; each is twice as long */
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
/* Lets all threads go on. */
void attach_release(struct attach *attach);

/* --- compete.c: the other threads --- */

/* A thread and its state when the search began, of /proc. */
struct attach_thread {
	pid_t tid;
	char state;
};

/* The caller frees the list. */
struct attach_thread *attach_list_threads(const struct attach *attach,
					  uint32_t *count);
/* Notes whether there are very many threads, and whether these run. */
void attach_count_running(struct attach *attach,
			  const struct attach_thread *list, uint32_t count);
/* Stops those that run. */
void attach_stop_running(struct attach *attach,
			 const struct attach_thread *list, uint32_t count);
/* The futex for which a thread sleeps; 0: for none. */
uint64_t attach_awaited_futex(const struct attach *attach, pid_t tid);
/* From now on, calls look after the others. */
void attach_compete(struct attach *attach);
/* A call begins: the others run, until it takes long.  Very many stop. */
void attach_share(struct attach *attach);
/* Lets those of the others go on that may hold @lock, and do not wait for it; of very many, for
 * a moment.  False if they were stopped long enough, and all go on. */
bool attach_make_way(struct attach *attach, uint64_t lock);

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
/* Provides the library for the process: by a link, or by a copy, which attach_drop_copy()
 * removes when it is loaded. */
void attach_send_library(struct attach *attach, const char *library);
void attach_drop_copy(const struct attach *attach);
/* The process's name of that library. */
const char *attach_library(const struct attach *attach);
/* The directory's name for commands that read it from here. */
const char *attach_name_here(const struct attach *attach);
/* Until something is recorded in it, the directory is removed at the end; @attach NULL: from
 * now on it stays. */
void attach_note_unused(const struct attach *attach);

#endif
