/*
 * The one parser of NAME:key,key=value,...  Profilers in the program use it, and so
 * does profrun, which refuses wrong options before it starts the program.
 *
 * The parser calls no function of libc and allocates nothing.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size of the name of a function or parameter, with its NUL. */
#define OPTION_TEXT_SIZE 128

enum option_kind {
	OPTION_WORD, /* no value */
	OPTION_NUMBER,
	OPTION_SIZE,   /* 512K: bytes */
	OPTION_TIME,   /* 10us: nanoseconds */
	OPTION_CHOICE, /* one of the words in @shown */
	OPTION_FUNCTION,
	OPTION_NTH,	  /* FUNCTION/N */
	OPTION_PARAMETER, /* FUNCTION/PARAMETER, a name or a number from 1 on */
	OPTION_LABEL,	  /* letters, digits and '_' */
	OPTION_SIGNAL,	  /* a name or a number, as kill takes it */
};

/* OPTION_calltree_EXACT... */
enum option_name {
#define OPTION(profiler, name, ...) OPTION_##profiler##_##name,
#define NO_OPTION(profiler)	    OPTION_##profiler##_NONE,
#include "options/options.def"
#undef OPTION
#undef NO_OPTION
	OPTIONS_COUNT,
};

struct profiler_option {
	const char *profiler;
	const char *key; /* NULL: the profiler has no options */
	enum option_kind kind;
	uint64_t least, most;
	unsigned
		times; /* how often it may occur; 0: any number, the last one counts */
	const char *shown; /* the value, for the user */
};

/* Indexed by enum option_name; the options of one profiler are adjacent. */
extern const struct profiler_option profiler_options[OPTIONS_COUNT];

struct option_value {
	const char *text; /* the value, or the function of NTH and PARAMETER */
	size_t size;
	const char *parameter; /* of PARAMETER, after the '/' */
	size_t parameter_size;
	/* NUMBER, SIZE, TIME, NTH; PARAMETER: 0 for a name; CHOICE: the index of the
	 * word, from 0 on; SIGNAL */
	uint64_t number;
};

/* The wrong item, and the reason. */
struct option_error {
	const char *item;
	size_t size;
	const struct profiler_option *option; /* NULL: unknown key */
	bool is_too_often;
};

/*
 * options_find - the first option of the profiler that NAME[:...] names, or NULL
 * options_next - the next option of the same profiler, or NULL
 */
const struct profiler_option *options_find(const char *profile);
const struct profiler_option *
options_next(const struct profiler_option *option);

/*
 * options_read - call @take for each item of @text, the options of @profiler
 *
 * It checks all items before it takes the first one.  @take may be NULL.  If an item is
 * wrong, it returns false, takes no item, and fills @error.
 */
typedef void option_taker(enum option_name name,
			  const struct option_value *value);
bool options_read(const char *profiler, const char *text, option_taker *take,
		  struct option_error *error);

/*
 * options_list - the options of @profiler: "exact, by=FUNCTION/ARGUMENT, ..."
 * options_explain - the reason of an error, and the allowed values
 *
 * They write as much as fits, and a NUL.
 */
void options_list(const char *profiler, char *text, size_t size);
void options_explain(const char *profiler, const struct option_error *error,
		     char *text, size_t size);

#endif
