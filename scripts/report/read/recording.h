/*
 * A recording, as far as it can be believed.  Whatever is wrong with it has
 * been said by warn() when recording_open() returns; what is left is within
 * bounds.  The program may still be running: what the functions here have
 * not copied may change under the reader's eyes.
 */
#ifndef REPORT_READ_RECORDING_H
#define REPORT_READ_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names.h"
#include "read/process.h"

/* One run.  A recording is one, or is made of several: profrun merge, jobs. */
struct run {
	/* its directory in the recording; NULL: that is all there is */
	const char *name;
	bool has_end;
	int wait_status;
	uint64_t end_mono_ns;
	const char *log; /* of processes that could not record; or NULL */
};

/* A function as the program knew it, once per process and generation. */
struct site {
	uint64_t address;
	uint32_t generation;
	uint32_t process;
	const char *group; /* which calls of it; NULL: all */
	bool has_hooks;	   /* calls of it were recorded */
	bool is_frame; /* @address is an instruction's: see model/frames.h */
	uint32_t function; /* for the model; of a frame: the chain's number */
};

/* What traces have no more: they were damaged, or cut off. */
struct trace_damage {
	uint64_t missing; /* blocks that were written, and are not there */
	uint64_t damaged; /* blocks that cannot be read to their end */
	uint64_t bytes;	  /* of these, that were not read */
};

struct recording {
	const char *path;
	struct run *parts; /* by name */
	uint32_t part_count, part_room;
	struct process *processes; /* by part, then by start time */
	uint32_t process_count, process_room;
	bool has_end;	 /* all parts have */
	int wait_status; /* the first that is not 0 */
	struct site *sites;
	uint32_t site_count, site_room;
	struct names groups; /* "kind=NUMBER" */
	struct trace_damage trace_damage;
	bool is_needed; /* for another model, when one is built */
};

/* The newest recording in the working directory; dies if there is none. */
const char *recording_find(void);

/* Dies if @path is no recording, or of another version.  @pid: only that
 * process; 0: all. */
void recording_open(struct recording *recording, const char *path,
		    uint32_t pid);

/* The directories in @path that are recordings, sorted; none if it is one itself. */
char **recording_parts(int directory, size_t *count);

/* Which file is where, for what points from one into another; again, when some of them
 * have gone. */
void process_list_ranges(struct process *process);

#endif
