/*
 * Files of the recording.  They are opened by name, allocated, mapped and closed at
 * once: no descriptor of ours is open while the program runs.  What is opened again is
 * looked at first: it must be the file that was made here.
 */
#ifndef SHIM_RECORD_FILE_H
#define SHIM_RECORD_FILE_H

#include <stddef.h>
#include <stdint.h>

struct directory;
struct record_file;

/* In all of these: the state lock is held; 0, or -errno, or a reason of trust.h. */

/* A new file with @size bytes, allocated and mapped. */
int record_file_create(const struct directory *directory, const char *name,
		       size_t size, struct record_file **file, void **memory);

/* @size more bytes at its end. */
int record_file_extend(struct record_file *file, size_t size, void **memory);

/* Puts bytes there that are not mapped; it may become longer. */
int record_file_write(struct record_file *file, uint64_t offset,
		      const void *memory, size_t size);

/* Where record_file_extend() goes on. */
uint64_t record_file_end(const struct record_file *file);

#endif
