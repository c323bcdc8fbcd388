/*
 * Ranks that profrun has put into one file for each host, ranks.HOST.zip: an
 * archive of their directories as they were, which `unzip` can read, too.
 *
 * A directory in such a file is opened as a descriptor of the archive whose
 * position is that of the directory's entry.  files.h opens, lists and maps
 * what is in it like what is on the disk.
 */
#ifndef REPORT_READ_PACKED_H
#define REPORT_READ_PACKED_H

#include <stdbool.h>
#include <stddef.h>

#define PACKED_PREFIX "ranks."
#define PACKED_SUFFIX ".zip"

/* Whether a descriptor is that of a directory in an archive. */
bool packed_is(int directory);

/*
 * packed_add_names - append the names of ranks that are only in archives
 *
 * A rank that is also on the disk, because profrun was killed between packing
 * and removing it, is left out.  A packed rank whose name a later run of the job
 * has taken is called NAME.packed.
 */
char **packed_add_names(int directory, char **names, size_t *count);

/* Opens a rank, or a directory below it; negative: there is none. */
int packed_open_rank(int directory, const char *name);
/* Opens a directory in a packed one. */
int packed_open_directory(int directory, const char *name);
/* Opens a file in a packed directory: a copy in memory; negative, with errno. */
int packed_open_file(int directory, const char *name);
bool packed_has(int directory, const char *name);
/* The names in a packed directory that @wanted accepts, unsorted. */
char **packed_list(int directory, bool (*wanted)(const char *), size_t *count);

#endif
