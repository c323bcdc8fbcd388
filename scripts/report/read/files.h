/* Opens the files of a recording, on the disk or in an archive (packed.h).
 * warn() reports each file that cannot be read. */
#ifndef REPORT_READ_FILES_H
#define REPORT_READ_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shim/format.h>

/* Opens the directory of a process in @recording; returns a negative value,
 * with a warning, on failure. */
int open_directory(int directory, const char *path, const char *name);
/* Does the same without a warning. */
int try_directory(int directory, const char *name);
/* The names in @directory that @wanted accepts, sorted by their number; free()
 * the list. */
char **list_names(int directory, bool (*wanted)(const char *), size_t *count);
void sort_names(char **names, size_t count);
bool has_file(int directory, const char *name);
/* Opens a file for reading; returns a negative value, with a warning, on
 * failure. */
int open_in(int directory, const char *file, const char *name);
/* The reason why an existing file or directory could not be opened; NULL: all
 * could be opened. */
const char *open_failure(void);
/* Maps a regular file readable.  Dies if the file has another version.  Returns
 * NULL, with a warning, if the file is unusable. */
const unsigned char *map_file(int fd, const char *name, uint64_t *size);
void unmap_file(const unsigned char *data, uint64_t size);
void check_version(const char *name, uint32_t version);
/* Finds the chunks of a file of @size bytes that lie within it and do not
 * overlap, and warns about others.  Returns their number. */
uint32_t read_chunks(const char *name, uint64_t size,
		     const struct shim_file *header,
		     struct shim_chunk chunks[SHIM_FILE_CHUNKS]);
bool is_unfinished(const char *name, uint32_t version);

/* From now on, a file that shrinks while it is mapped reads as zero. */
void survive_truncation(void);

#endif
