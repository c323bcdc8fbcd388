/* The files of a recording.  What cannot be read is said by warn(). */
#ifndef REPORT_READ_FILES_H
#define REPORT_READ_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shim/format.h>

/* The directory of a process in @recording; negative, with a warning. */
int open_directory(int directory, const char *path, const char *name);
/* The names in @directory that @wanted likes, by their number; free() it. */
char **list_names(int directory, bool (*wanted)(const char *), size_t *count);
/* Opens a file for reading; negative, with a warning, if that cannot be. */
int open_in(int directory, const char *file, const char *name);
/* Why a file or a directory that is there could not be opened; NULL: all could. */
const char *open_failure(void);
/* Maps a regular file readable; dies when its version is not ours. NULL with
 * a warning when it is no good. */
const unsigned char *map_file(int fd, const char *name, uint64_t *size);
void unmap_file(const unsigned char *data, uint64_t size);
void check_version(const char *name, uint32_t version);
/* The chunks of a file of @size bytes that are within it and do not overlap; of others
 * a warning.  How many. */
uint32_t read_chunks(const char *name, uint64_t size,
		     const struct shim_file *header,
		     struct shim_chunk chunks[SHIM_FILE_CHUNKS]);
bool is_unfinished(const char *name, uint32_t version);

/* From here on a file that shrinks while it is mapped reads as zero. */
void survive_truncation(void);

#endif
