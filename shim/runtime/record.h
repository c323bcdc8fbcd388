/*
 * The recording this process writes: its directory and its files.  What a
 * profiler sees of it is <shim/record.h>.
 */
#ifndef SHIM_RECORD_INTERNAL_H
#define SHIM_RECORD_INTERNAL_H

#include <shim/format.h>
#include <stddef.h>
#include <stdint.h>

struct record_file;

/* Makes the directory and meta.  State lock held.  0 or -errno. */
int record_start(void);
/* The same for a forked child, beside its parent's. */
int record_fork(void);
/* There, instead: it has none, and nothing goes into its parent's. */
void record_give_up(void);

/* Somebody has made the file @name shorter, which is mapped at @memory: says so.
 * Async. */
void record_is_short(const char *name, const void *memory);

/* Counts @calls of a thread that has no file. */
void record_lose(enum shim_lost cause, uint64_t calls);

struct shim_meta *record_meta(void);
/* The process's part of the recording: an absolute path. */
const char *record_directory(void);
/* A descriptor of it (O_PATH), or -errno. */
int record_open_directory(void);

/* A new file of the recording with @size bytes allocated and mapped: record_file.h. */
int record_create(const char *name, size_t size, struct record_file **file,
		  void **memory);

#endif
