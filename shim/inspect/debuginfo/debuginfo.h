/*
 * The interface of libshim-debuginfo.so.  libshim.so opens it in a namespace of its own
 * when a profiler first needs debug information.  The library has its own copies of
 * libdw and malloc in that namespace.
 *
 * Only one call may run at a time.  Returned strings and arrays are valid until the
 * next call.
 */
#ifndef SHIM_DEBUGINFO_DEBUGINFO_H
#define SHIM_DEBUGINFO_DEBUGINFO_H

#include "inspect/callsite.h"
#include "inspect/prototype.h"
#include "inspect/variables.h"

#include <shim/typetree.h>
#include <stdint.h>

#define DEBUGINFO_VERSION 10
#define DEBUGINFO_RANGES  16

struct debuginfo_range {
	uint64_t start, size; /* addresses in the file */
};

/* A query about a function. */
struct debuginfo_question {
	uint64_t image; /* equal numbers mean the same file */
	const char *path;
	const unsigned char *build_id;
	uint32_t build_id_size;
	uint32_t range_count;	/* ranges[0] starts at the function's start */
	uint64_t device, inode; /* as in /proc/self/maps */
	struct debuginfo_range ranges[DEBUGINFO_RANGES];
	/* Set for a call by the function: the callee (0: in another file), the return
	 * address, and the difference between addresses in memory and in the file. */
	uint64_t callee, site, bias;
	/* The linker names, each with its NUL, of a function from another image that
	 * was inlined: its hook returns to @site.  NULL: another query. */
	const char *inlined;
	uint64_t inlined_size;
};

struct debuginfo_answer {
	const void *data;
	uint64_t count; /* elements */
	/* Why no query about the image can succeed.  NULL if queries can, or after the
	 * first answer with the reason. */
	const char *trouble;
};

/* Rows of an image's line table that begin a statement, by address.  Line 0: the code
 * after the row has no line.  Rows with the same address keep the table's order. */
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
	uint64_t dropped; /* rows of tables that contradict others */
};

/*
 * The answer of libshim-debuginfo.so to queries for types: one of these for each value,
 * followed by the tree and then the name.
 */
struct typetree_value {
	uint32_t size;	    /* with tree and name; a multiple of 8 */
	uint32_t name_size; /* with its NUL */
};

static inline const struct shim_typetree *
typetree_of(const struct typetree_value *value)
{
	return (const struct shim_typetree *)(value + 1);
}

static inline const char *typetree_name_of(const struct typetree_value *value)
{
	return (const char *)typetree_of(value) + typetree_of(value)->size;
}

/* The functions return 0 or -errno: -ENOENT without debug information for the
 * function. */
typedef int debuginfo_call(const struct debuginfo_question *question,
			   struct debuginfo_answer *answer);

struct debuginfo {
	uint32_t version;
	/* Called first, and once: loads the libraries that later calls may need,
	 * because none may be loaded while a lock is held. */
	void (*start)(void);
	/* Called by each other thread before its first query: the loader allocates the
	 * thread's data of these libraries by the program's malloc, and a query may come
	 * while that is locked. */
	void (*begin_thread)(void);
	debuginfo_call *lines;		    /* of struct shim_line */
	debuginfo_call *file;		    /* of char */
	debuginfo_call *template_arguments; /* of char */
	debuginfo_call *prototype;	    /* of struct prototype_value */
	debuginfo_call *callsite;	    /* of struct callsite */
	/* Of char: the linker name by which the caller calls the function. */
	debuginfo_call *called;
	/* The result, then the parameters without hidden ones: bytes of struct
	 * typetree_value. */
	debuginfo_call *signature;
	/* The whole image: one struct debuginfo_lines.  @ranges are its code. */
	debuginfo_call *linetable;
	/* At the call that returns to @site: one struct variables. */
	debuginfo_call *locals;
	/* Reads the data of the whole image that all other queries need.  No answer. */
	debuginfo_call *open;
	/* The name in the source, or NULL. */
	const char *(*demangle)(const char *name);
	/* Called after a call about @image (0: no image) did not return. */
	void (*abandon)(uint64_t image);
};

/* The object's name in libshim-debuginfo.so. */
#define DEBUGINFO_SYMBOL "shim_debuginfo"

#endif
