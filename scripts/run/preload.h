/* The name of a library in LD_PRELOAD. */
#ifndef RUN_PRELOAD_H
#define RUN_PRELOAD_H

/* preload_error - NULL, or the reason why LD_PRELOAD cannot name the file @library */
const char *preload_error(const char *library);

/*
 * preload_entry - the entry for @library in LD_PRELOAD
 *
 * The entry is the path.  A blank ends an entry, so for a path with blanks the entry is
 * the file name, and its directory goes to the front of LD_LIBRARY_PATH, which may have
 * blanks.  preload_error() must be NULL.
 */
const char *preload_entry(const char *library);

#endif
