/*
 * Files of the recording.  shim opens a file by name, allocates and maps it, and closes
 * it at once: it has no open descriptor while the program runs.  When shim opens a file
 * again, it checks that it has created this file.
 */
#ifndef SHIM_RECORD_FILE_H
#define SHIM_RECORD_FILE_H

#include <stddef.h>
#include <stdint.h>

struct directory;
struct record_file;

/* All functions: the state lock is held.  They return 0, -errno, or a reason of
 * trust.h. */

/* Creates a file of @size bytes, allocated and mapped. */
int record_file_create(const struct directory *directory, const char *name,
		       size_t size, struct record_file **file, void **memory);

/* Adds @size bytes at the file's end, allocated and mapped. */
int record_file_extend(struct record_file *file, size_t size, void **memory);

/* Writes bytes without mapping them; the file grows if necessary. */
int record_file_write(struct record_file *file, uint64_t offset,
		      const void *memory, size_t size);

/* The offset at which record_file_extend() continues. */
uint64_t record_file_end(const struct record_file *file);

#endif
