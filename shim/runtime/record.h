/*
 * The recording that this process writes: its directory and its files.  The
 * profilers' interface is <shim/record.h>.
 */
#ifndef SHIM_RECORD_INTERNAL_H
#define SHIM_RECORD_INTERNAL_H

#include <shim/format.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record_file;

/* Creates the directory and meta.  State lock held.  Returns 0 or -errno. */
int record_start(void);
/* Does the same in a forked child; its directory is a sibling of the parent's.  -ENOENT if
 * the parent was detached: then the child has none. */
int record_fork(void);
/* Begins another recording, in the directory of the settings.  Files of the former one stay
 * mapped.  After a failure the former one goes on.  State lock held. */
int record_renew(void);
/* A forked child without a recording calls it: the child then writes nothing into the
 * parent's recording. */
void record_give_up(void);

/* Adds a profiler, NAME[:ARGUMENTS], to those that the recording names, also those of forked
 * children.  State lock held. */
void record_note_profiler(const char *description);

/* Counts @calls of a thread that has no file. */
void record_lose(enum shim_lost cause, uint64_t calls);
/* Logs the cause of @error (-errno or a reason of trust.h) once, and returns it. */
enum shim_lost record_note_failure(int error);
/* From now on, @meta has the counters of losses. */
void record_lost_to(struct shim_meta *meta);
/* The meta with the counters: a child without a recording uses its parent's. */
struct shim_meta *record_lost_meta(void);
/* In a forked child: the log has no cause yet. */
void record_lost_forked(void);
/* The process has no profilers' files yet. */
void record_chunks_start(void);

/* Whether the process that started this one records into the same directory. */
bool record_has_parent(void);
struct shim_meta *record_meta(void);
/* Reads the clocks again, for the report; the process ends, or may not read them later. */
void record_note_clocks(void);
/* `profrun detach`: the recording has an end, until the next attach.  State lock held; in a
 * forked child, record_is_detached needs no lock. */
void record_detach(bool begins);
bool record_is_detached(void);
/* The process's part of the recording: an absolute path. */
const char *record_directory(void);
/* A descriptor of that directory (O_PATH), or -errno. */
int record_open_directory(void);

/* The same for the directory of the recording, which all processes of a run share. */
int record_open_shared(void);

/* Whether a program that this process executes would not find the recording of the run, or
 * could not write it: in another root directory, for another user. */
bool record_is_out_of_reach(void);

/* Creates a file in the process's directory, as record_file_create (record_file.h) does. */
int record_create(const char *name, size_t size, struct record_file **file,
		  void **memory);

#endif
