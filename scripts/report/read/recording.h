/*
 * A recording, as far as it can be trusted.  When recording_open() returns,
 * warn() has reported every damage, and all data are within bounds.  The
 * program may still be running: data that these functions have not copied may
 * change at any time.
 */
#ifndef REPORT_READ_RECORDING_H
#define REPORT_READ_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names.h"
#include "read/process.h"

struct entry;

/* One run.  A recording has one run or several (profrun merge, jobs). */
struct run {
	/* its directory in the recording; NULL: the recording is this run */
	const char *name;
	bool has_end;
	int wait_status;
	uint64_t end_mono_ns;
	/* log of the processes that could not record, or NULL */
	const char *log;
};

/* A function by its address in the program, once per process and generation. */
struct site {
	uint64_t address;
	uint32_t generation;
	uint32_t process;
	const char *group; /* the group of its calls; NULL: all calls */
	bool has_hooks;	   /* its calls were recorded */
	/* @address is that of an instruction, see model/frames.h */
	bool is_frame;
	uint32_t function; /* for the model; for a frame: number of its chain */
};

/* Blocks that are missing from traces: they were damaged, or cut off. */
struct trace_damage {
	uint64_t missing; /* blocks that were written and are missing */
	uint64_t damaged; /* blocks that cannot be read to their end */
	uint64_t bytes;	  /* unreadable bytes in damaged blocks */
};

struct recording {
	const char *path;
	struct run *parts; /* by name */
	uint32_t part_count, part_room;
	struct process *processes; /* by part, then by start time */
	uint32_t process_count, process_room;
	bool has_end;	 /* all parts have an end */
	int wait_status; /* the first status that is not 0 */
	struct site *sites;
	uint32_t site_count, site_room;
	struct names groups;	 /* "kind=NUMBER" */
	struct names code_files; /* of functions of interpreters */
	struct trace_damage trace_damage;
	bool has_left_out;  /* options of the trace have left calls out */
	bool is_read_again; /* another model will be built from it */
	/* Calls of traces are in the place of counted calls.  Allocations, waits and
	 * exceptions were with the counted calls. */
	bool has_traced_calls;
};

/* The newest recording in the working directory; dies if there is none. */
const char *recording_find(void);

/* Dies if @path is no recording, or if it has another version.  @pid: read only
 * this process; 0: all. */
void recording_open(struct recording *recording, const char *path,
		    uint32_t pid);

/* The same without call trees and coverage: all files of a process but those
 * of its threads. */
void recording_open_heads(struct recording *recording, const char *path);
/* Unmaps all files, and frees what is not text. */
void recording_free(struct recording *recording);
/* Whether unwinding has found the node (not a hook): its calls are not counted. */
bool recording_is_frame(const struct recording *recording,
			const struct entry *entry);

/* Opens the directory of a recording, or a rank in an archive by the name that it
 * had (packed.h); negative, with errno, on failure. */
int recording_directory(const char *path);
/* The directories in @path that are recordings, sorted; none if @path itself is
 * a recording. */
char **recording_parts(int directory, size_t *count);

/* Lists the address ranges of all files, for pointers from one file into
 * another.  Call it again after files were dropped. */
void process_list_ranges(struct process *process);

#endif
