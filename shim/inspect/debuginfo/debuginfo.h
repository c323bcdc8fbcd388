/*
 * The interface of libshim-debuginfo.so.  libshim.so opens it in a namespace of its own
 * when a profiler first needs debug information.  There it may use libdw and malloc:
 * they are copies of its own, separate from the program's.
 *
 * One call at a time.  Returned strings and arrays are valid until the next call.
 */
#ifndef SHIM_DEBUGINFO_DEBUGINFO_H
#define SHIM_DEBUGINFO_DEBUGINFO_H

#include "inspect/callsite.h"
#include "inspect/prototype.h"
#include "inspect/variables.h"

#include <shim/typetree.h>
#include <stdint.h>

#define DEBUGINFO_VERSION 8
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
	/* For a call by the function: the callee (0: in another file), the return
	 * address, and the difference of addresses in memory and in the file. */
	uint64_t callee, site, bias;
	/* Not NULL: the function is from another image, and was inlined where its
	 * hook returns to @site.  Its linker names, each with its NUL. */
	const char *inlined;
	uint64_t inlined_size;
};

struct debuginfo_answer {
	const void *data;
	uint64_t count; /* elements */
	/* Why the whole image has no answers; NULL if it has, or the reason was
	 * returned before. */
	const char *trouble;
};

/* Rows of an image's line table that begin a statement, by address.  Line 0: the code
 * that follows has no line.  Rows with the same address keep the table's order. */
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

/* The functions return 0 or -errno: -ENOENT if there is no debug information
 * for the function. */
typedef int debuginfo_call(const struct debuginfo_question *question,
			   struct debuginfo_answer *answer);

struct debuginfo {
	uint32_t version;
	/* Called first, and once: loads the libraries that it may need later,
	 * because none must be loaded while a lock is held. */
	void (*start)(void);
	debuginfo_call *lines;		    /* of struct shim_line */
	debuginfo_call *file;		    /* of char */
	debuginfo_call *template_arguments; /* of char */
	debuginfo_call *prototype;	    /* of struct prototype_value */
	debuginfo_call *callsite;	    /* of struct callsite */
	/* The linker name by which the caller calls the function: of char. */
	debuginfo_call *called;
	/* The result, then the parameters without hidden ones: bytes of struct
	 * typetree_value. */
	debuginfo_call *signature;
	/* The whole image: one struct debuginfo_lines.  @ranges are its code. */
	debuginfo_call *linetable;
	/* At the call that returns to @site: one struct variables. */
	debuginfo_call *locals;
	/* The whole image: reads what all other queries need.  No answer. */
	debuginfo_call *open;
	/* The name in the source, or NULL. */
	const char *(*demangle)(const char *name);
	/* A call about @image (0: no image) did not return. */
	void (*abandon)(uint64_t image);
};

/* The object's name in libshim-debuginfo.so. */
#define DEBUGINFO_SYMBOL "shim_debuginfo"

#endif
