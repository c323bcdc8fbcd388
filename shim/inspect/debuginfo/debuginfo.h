/*
 * What libshim.so asks of libshim-debuginfo.so, which is opened in a namespace
 * of its own when a profiler first wants what only debug information knows.
 * There it may use libdw and malloc: they are its own copies, and the program's
 * are never met.
 *
 * One call at a time.  Strings and arrays that are given back stay until the
 * next call.
 */
#ifndef SHIM_DEBUGINFO_DEBUGINFO_H
#define SHIM_DEBUGINFO_DEBUGINFO_H

#include "inspect/callsite.h"
#include "inspect/prototype.h"
#include "inspect/variables.h"

#include <shim/typetree.h>
#include <stdint.h>

#define DEBUGINFO_VERSION 8
#define DEBUGINFO_RANGES 16

struct debuginfo_range {
	uint64_t start, size; /* addresses in the file */
};

/* A function. */
struct debuginfo_question {
	uint64_t image; /* the same number means the same file */
	const char *path;
	const unsigned char *build_id;
	uint32_t build_id_size;
	uint32_t range_count;	/* ranges[0] begins where the function does */
	uint64_t device, inode; /* as /proc/self/maps has them */
	struct debuginfo_range ranges[DEBUGINFO_RANGES];
	/* Of a call by the function: what is called (0: it is elsewhere), where it
	 * returns to, and how far from the file's addresses those in memory are. */
	uint64_t callee, site, bias;
	/* Not NULL: the function is of another image, and was inlined where its
	 * hook returns to @site: its linker names, each with its NUL. */
	const char *inlined;
	uint64_t inlined_size;
};

struct debuginfo_answer {
	const void *data;
	uint64_t count; /* elements */
	/* Why there is nothing for the whole image; NULL if that is not so or
	 * was told before. */
	const char *trouble;
};

/* Where the lines of an image begin: the rows of its line table that begin a
 * statement, by address; line 0 is where code of no line follows.  Rows of one address are in the order of the table. */
struct debuginfo_row {
	uint64_t address;
	uint32_t line, file;
	uint16_t column;
};

struct debuginfo_lines {
	const struct debuginfo_row *rows;
	const char *files; /* absolute names, each with its NUL */
	uint64_t row_count;
	uint32_t file_count, files_size;
	uint64_t dropped; /* rows of tables that contradict each other */
};

/*
 * What libshim-debuginfo.so answers when it is asked for types: one of these for
 * each value, one after the other, the tree and then the name behind it.
 */
struct typetree_value {
	uint32_t size;	    /* of all of it: a multiple of 8 */
	uint32_t name_size; /* with its NUL */
};

static inline const struct shim_typetree *
typetree_of(const struct typetree_value *value)
{
	return (const struct shim_typetree *)(value + 1);
}

static inline const char *
typetree_name_of(const struct typetree_value *value)
{
	return (const char *)typetree_of(value) + typetree_of(value)->size;
}

/* The functions return 0 or -errno: -ENOENT if there is no debug information
 * for the function. */
typedef int debuginfo_call(const struct debuginfo_question *question,
			   struct debuginfo_answer *answer);

struct debuginfo {
	uint32_t version;
	/* First of all, once: loads what it may need later, because a library
	 * must not be loaded while a lock is held. */
	void (*start)(void);
	debuginfo_call *lines;		    /* of struct shim_line */
	debuginfo_call *file;		    /* of char */
	debuginfo_call *template_arguments; /* of char */
	debuginfo_call *prototype;	    /* of struct prototype_value */
	debuginfo_call *callsite;	    /* of struct callsite */
	/* The linker name by which the caller calls it: of char. */
	debuginfo_call *called;
	/* Its result, then its parameters but for hidden ones: bytes of struct
	 * typetree_value. */
	debuginfo_call *signature;
	/* Of the whole image; one struct debuginfo_lines.  @ranges are its code. */
	debuginfo_call *linetable;
	/* At the call that returns to @site; one struct variables. */
	debuginfo_call *locals;
	/* Of the whole image: reads what all other answers begin with.  None.
	 */
	debuginfo_call *open;
	/* The name as the source has it, or NULL. */
	const char *(*demangle)(const char *name);
	/* A call about @image (0: no image) did not come back. */
	void (*abandon)(uint64_t image);
};

/* The object's name in libshim-debuginfo.so. */
#define DEBUGINFO_SYMBOL "shim_debuginfo"

#endif
