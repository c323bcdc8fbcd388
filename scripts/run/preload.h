/* How LD_PRELOAD names a library. */
#ifndef RUN_PRELOAD_H
#define RUN_PRELOAD_H

/* preload_error - NULL, or why no list can name the file @library */
const char *preload_error(const char *library);

/*
 * preload_entry - what stands for @library in LD_PRELOAD
 *
 * Its path; or, as a blank ends an entry, its name, and its directory is put in front
 * of LD_LIBRARY_PATH, where blanks are letters.  There is no preload_error().
 */
const char *preload_entry(const char *library);

#endif
