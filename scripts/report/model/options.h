/* What the command line asks for. */
#ifndef REPORT_MODEL_OPTIONS_H
#define REPORT_MODEL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum sort {
	SORT_SELF,
	SORT_TOTAL,
	SORT_CALLS,
	SORT_MEAN,
	SORT_MAX,
	SORT_BYTES,
	SORT_ALLOCATIONS,
	SORT_PEAK,
	SORT_LEAKED,
	SORT_TEMPORARY,
	SORT_LOST
};

enum value {
	VALUE_SELF,
	VALUE_TOTAL,
	VALUE_CALLS,
	VALUE_WAITS,
	VALUE_BYTES,
	VALUE_ALLOCATIONS,
	VALUE_PEAK,
	VALUE_LEAKED,
	VALUE_LOST
};

/* Of functions, where people read them. */
enum name_form {
	NAMES_FITTED, /* full where a line has room, else short */
	NAMES_FULL,
	NAMES_SHORT, /* base/short_name.h */
	NAMES_MANGLED,
};

#define PATTERNS_MAX 64

/* As --hide and --only have them, in a shell's form. */
struct patterns {
	const char *text[PATTERNS_MAX];
	uint32_t count;
};

/* Which functions are shown: model/shown.h. */
struct selection {
	struct patterns hide, only;
	const char *focus; /* an extended regular expression; NULL: all */
	bool merges_recursion;
};

struct options {
	enum sort sort;
	bool sort_given;
	long limit; /* rows; 0: all; -1: not given */
	bool tree;
	const char *callers, *callees, *histogram; /* of a function */
	struct selection selection;
	bool threads;
	bool ranks;
	uint32_t pid;
	const char *format; /* text, json, csv */
	double min_percent;
	uint32_t depth; /* of the printed tree */
	enum name_form names;
	const char *color;
	bool raw;
	bool sums;	 /* of info: nothing else */
	bool samples;	 /* not the calls, if both are there */
	bool trace;	 /* the calls of a trace, if both are there */
	bool memory;	 /* the same of memory */
	bool locks;	 /* and of waits for locks, */
	bool exceptions; /* and of exceptions */
	bool coverage;	 /* what was reached */
	enum value value;
	bool value_given;
	uint32_t max_depth; /* of exported paths */
	/* replay: */
	double from_ns, to_ns; /* 0: no end */
	double min_duration_ns;
	const char *thread;   /* its number or name; NULL: all */
	const char *function; /* its calls and what they call */
	const char *output;
	bool if_any;	     /* finish: nothing to write is no error */
	const char *against; /* a recording to compare with */
	const char *object;  /* whose functions; NULL: the program's */
	uint32_t max_paths, max_calls; /* one by one in the page of html */
};

#endif
