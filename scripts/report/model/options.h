/* The options of the command line. */
#ifndef REPORT_MODEL_OPTIONS_H
#define REPORT_MODEL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "names/source.h"

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

/* Forms of function names in output for people. */
enum name_form {
	NAMES_FITTED, /* full if the line has room, otherwise short */
	NAMES_FULL,
	NAMES_SHORT, /* base/short_name.h */
	NAMES_MANGLED,
};

#define PATTERNS_MAX 64

/* The patterns of --hide and --only, in shell syntax. */
struct patterns {
	const char *text[PATTERNS_MAX];
	uint32_t count;
};

/* Selects the functions to show: see model/shown.h. */
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
	const char *callers, *callees, *histogram; /* name of a function */
	struct selection selection;
	bool threads;
	bool ranks;
	bool messages; /* show messages between ranks */
	uint32_t pid;
	const char *format; /* text, json, csv; of diff: github, junit */
	double min_percent;
	bool has_fail_above;
	double fail_above; /* of diff: in per cent of the whole of A */
	/* limit of the printed tree, or of a timeline; 0: none */
	uint32_t depth;
	enum name_form names;
	const char *color;
	bool raw;
	bool sums;	  /* of info: nothing else */
	const char *host; /* of reduce: only its ranks; NULL: all */
	bool node_files;  /* of reduce: one file for the ranks of this host */
	bool samples;	  /* prefer samples to calls */
	bool trace;	  /* prefer the calls of a trace */
	bool memory;	  /* show memory */
	bool locks;	  /* show waits for locks */
	bool exceptions;  /* show exceptions */
	bool coverage;	  /* show coverage */
	enum value value;
	bool value_given;
	uint32_t max_depth; /* limit of exported paths; 0: the format's */
	/* The window of a trace.  @has_window: one of its options was given. */
	bool has_window;
	double from_ns, to_ns; /* 0: no end */
	double min_duration_ns;
	const char *thread;	     /* its number or name; NULL: all */
	const char *function;	     /* show its calls and their callees */
	struct source_places places; /* of sources */
	int context;		     /* lines around those with samples */
	bool by_line; /* paths of different lines stay separate */
	bool lines;   /* --lines: show them */
	bool code;    /* show instructions */
	const char *output;
	double delay; /* of top: seconds between two looks; 0: top chooses */
	bool source;  /* of html: with source lines */
	bool embed;   /* of html: as a part of another page */
	bool if_any;  /* finish: nothing to write is no error */
	const char *database; /* of history */
	const char
		*version; /* of history: of the added runs; NULL: their names */
	const char *against; /* a recording to compare with */
	/* object whose functions are exported; NULL: the program */
	const char *object;
	/* limits of single paths and calls in the HTML page */
	uint32_t max_paths, max_calls;
};

#endif
