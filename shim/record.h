/*
 * The recording this process writes: its directory and its files.  What a
 * profiler sees of it is <shim/record.h>.
 */
#ifndef SHIM_RECORD_INTERNAL_H
#define SHIM_RECORD_INTERNAL_H

#include <shim/format.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the directory and meta.  State lock held.  0 or -errno. */
int record_start(void);
/* The same for a forked child, beside its parent's. */
int record_fork(void);
/* There, instead: it has none, and nothing goes into its parent's. */
void record_give_up(void);

/* Counts @calls of a thread that has no file. */
void record_lose(enum shim_lost cause, uint64_t calls);

struct shim_meta *record_meta(void);
/* The process's part of the recording: an absolute path. */
const char *record_directory(void);

/* A new file of the recording with @size bytes allocated and mapped. */
int record_create(const char *name, size_t size, void **memory);
/* @size more bytes at @offset of a file that record_create made. */
int record_extend(const char *name, uint64_t offset, size_t size,
		  void **memory);

#endif
