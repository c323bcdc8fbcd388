/* The marks of calls that compilers put into an ELF file. */
#ifndef COMMON_MARKS_H
#define COMMON_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct marks {
	bool is_known;	    /* the file could be read */
	bool is_usable;	    /* shim knows XRay's sleds of this processor */
	bool calls_hooks;   /* -finstrument-functions: uncounted */
	uint32_t functions; /* with XRay's sleds, each counted once */
	uint32_t sleds; /* of these functions: entries, returns, tail calls */
	/* No-ops of -fpatchable-function-entry, or what -mrecord-mcount lists. */
	uint32_t entries;
	bool calls_mcount; /* -pg: uncounted */
	size_t build_id_size;
	unsigned char build_id[64];
};

/* marks_read - find the marks of the file @path.  All offsets are checked. */
void marks_read(struct marks *marks, const char *path);

/* marks_read_same - as marks_read, of the file that had this build-id when it was loaded
 *
 * Returns whether it still has, and could be read. */
bool marks_read_same(struct marks *marks, const char *path,
		     const unsigned char *build_id, size_t size);

/* marks_any - whether calls of functions of the file can be seen */
bool marks_any(const struct marks *marks);

/* marks_text - the marks in words, such as "-finstrument-functions, XRay: 12 functions"
 *
 * Empty without marks.  Returns @text, cut to @size bytes with its NUL. */
const char *marks_text(const struct marks *marks, char *text, size_t size);

#endif
