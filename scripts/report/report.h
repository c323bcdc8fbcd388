/* What the command line asks for, and the outputs, one file each. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "model.h"

enum sort { SORT_SELF, SORT_TOTAL, SORT_CALLS, SORT_MEAN, SORT_MAX,
	    SORT_BYTES, SORT_ALLOCATIONS, SORT_PEAK, SORT_LEAKED,
	    SORT_TEMPORARY, SORT_LOST };
enum value { VALUE_SELF, VALUE_TOTAL, VALUE_CALLS, VALUE_WAITS, VALUE_BYTES,
	     VALUE_ALLOCATIONS, VALUE_PEAK, VALUE_LEAKED, VALUE_LOST };

struct options {
	enum sort sort;
	bool sort_given;
	long limit;			/* rows; 0: all; -1: not given */
	bool tree;
	const char *callers, *callees, *histogram;	/* of a function */
	bool threads;
	bool ranks;
	uint32_t pid;
	const char *format;		/* text, json, csv */
	double min_percent;
	uint32_t depth;			/* of the printed tree */
	bool mangled;
	const char *color;
	bool raw;
	bool samples;			/* not the calls, if both are there */
	bool trace;			/* the calls of a trace, if both are there */
	bool memory;			/* the same of memory */
	bool locks;			/* and of waits for locks, */
	bool exceptions;		/* and of exceptions */
	bool coverage;			/* what was reached */
	enum value value;
	bool value_given;
	uint32_t max_depth;		/* of exported paths */
	/* replay: */
	double from_ns, to_ns;		/* 0: no end */
	double min_duration_ns;
	const char *thread;		/* its number or name; NULL: all */
	const char *function;		/* its calls and what they call */
	const char *output;
	bool if_any;			/* finish: nothing to write is no error */
	const char *against;		/* a recording to compare with */
	const char *object;		/* whose functions; NULL: the program's */
	uint32_t max_paths, max_calls;	/* one by one in the page of html */
};

/* How text is laid out where it goes. */
struct page {
	FILE *out;
	const struct options *options;
	struct model *model;
	bool color;
	size_t columns;			/* SIZE_MAX: not a terminal */
};

struct page page_on(FILE *out, const struct options *options,
		    struct model *model);
/* How many of @count rows to print, if it is usually @usual. */
uint32_t page_rows(const struct page *page, uint32_t usual, uint32_t count);
/* Says how many of @count were not. */
void page_left_out(const struct page *page, uint32_t shown, uint32_t count);
/* @samples: of the same run, to compare with; or NULL. */
void text_print(FILE *out, struct model *model, struct model *samples,
		const struct options *options);
/* The lines before its table. */
void head_print(FILE *out, struct model *model, const struct options *options);
/* crosscheck.c */
void crosscheck_print(const struct page *page, struct model *samples);
void tree_print(const struct page *page);
/* memory.c: the table of functions; what no instrumented function allocated. */
#define MEMORY_OUTSIDE "(not in an instrumented function)"
void memory_print(const struct page *page);
/* What --sort asks for, of a function or path, what that is called, and whether it is
 * bytes. */
uint64_t memory_sorted(const struct memory *memory,
		       const struct options *options);
const char *memory_sorted_name(const struct options *options);
bool memory_sorts_bytes(const struct options *options);
/* From the outermost caller on. */
void memory_put_path(const struct page *page, uint32_t path);
/* snapshots.c */
void snapshots_print(const struct page *page);
/* The least that those of bucket @bucket have lived. */
double memory_life_ns(const struct model *model, int bucket);
uint64_t memory_value(const struct memory *memory, enum value value);
/* paths.c: the functions of a path, from the inside; from the outside as a list of
 * names, and as "name;name".  NONE is unknown: null, and empty. */
void path_print(const struct page *page, uint32_t path);
void path_json(FILE *out, const struct model *model,
	       const struct options *options, uint32_t path);
void path_csv(FILE *out, const struct model *model,
	      const struct options *options, uint32_t path);
/* locks.c: the table of locks, and who waits for them; the same for programs. */
void locks_print(const struct page *page);
void locks_json(FILE *out, const struct model *model,
		const struct options *options);
void locks_csv(FILE *out, const struct model *model,
	       const struct options *options);
/* exceptions.c: what is thrown and caught where; the same for programs. */
void exceptions_print(const struct page *page);
void exceptions_json(FILE *out, const struct model *model,
		     const struct options *options);
void exceptions_csv(FILE *out, const struct model *model,
		    const struct options *options);
/* "1.5 MiB" */
const char *human_bytes(char text[SHORT_TEXT], uint64_t bytes)
	__attribute__((warn_unused_result));
/* Dies if --callers and the like name no function, before all output. */
void relatives_check(const struct page *page);
void relatives_print(const struct page *page);
/* Which functions @name means; dies if that cannot be said. */
bool *find_functions(const struct model *model, const char *name);
/* asked.c: warns of functions that a profile names and that nobody called. */
void asked_check(const struct model *model);
/* replay.c: the timeline as nested calls. */
void replay_print(FILE *out, struct recording *recording,
		  const struct options *options);
void json_print(FILE *out, struct model *model, const struct options *options,
		bool with_paths);
void csv_print(FILE *out, struct model *model, const struct options *options);
void folded_print(FILE *out, struct model *model,
		  const struct options *options);
void callgrind_print(FILE *out, struct model *model,
		     const struct options *options);
void pprof_print(FILE *out, struct model *model, const struct options *options);
/* gmon.c: gmon.out at @path, and its symbols at @path.syms.  @samples, or NULL,
 * tell the times if @calls have none. */
void gmon_write(struct model *calls, struct model *samples, const char *path);
/* Where the files for profrun gprof go; it is removed when the program ends. */
const char *gmon_make_directory(void);
/* gprof's exit status. */
int gmon_run_gprof(const char *file, char **options, int count);
/* join.c: a new recording at @output that is made of others. */
void recordings_join(const char *output, char **paths, int count);
/* ranks.c; the model keeps threads apart. */
void ranks_print(const struct page *page);
void ranks_json(FILE *out, struct model *model);
/* merge.c: the sum of gmon.out files of one object, at @path. */
void gmon_merge(const char *path, char **files, int count);

/* finish.c */

/* Writes the files that programs could not, as they had counted for monitor(3),
 * into @directory.  How many. */
uint32_t histograms_finish(const struct recording *recording,
			   const char *directory);
/* diff.c: compares the recordings of two sets. */
void diff_print(FILE *out, const struct options *options, char **first,
		int first_count, char **second, int second_count);
/* main.c: calls, or samples if there are no calls or they are asked for. */
void model_read(struct model *model, struct recording *recording,
		const struct options *options, const char *path);
/* linker_order.c: names of functions, those first that take most. */
void linker_order_print(FILE *out, struct model *model,
			const struct options *options);
void speedscope_print(FILE *out, struct model *model,
		      const struct options *options);
void massif_print(FILE *out, struct model *model,
		  const struct options *options);
void info_print(FILE *out, struct model *model);

/* Shared by the text outputs: a time, or "-" when nobody knows it. */
const char *time_text(char text[SHORT_TEXT], double ns, bool is_known);
const char *end_text(const struct recording *recording);
const char *shown_name(const struct function *function,
		       const struct options *options);
/* " [object file:line]" when there is something to say. */
void put_place(const struct page *page, struct function *function);
/* The cells of a row are done: the name, cut to what is left of the line. */
void put_name(const struct page *page, struct function *function, size_t used);

/* order.c: the numbers of functions that were called, as --sort wants it. */
uint32_t *order_functions(const struct model *model, const struct sums *sums,
			  const struct options *options, uint32_t *count);
/* The same of some paths. */
uint32_t *order_part(const struct model *model, const struct part_sums *part,
		     const struct options *options, uint32_t *count);
enum sort effective_sort(const struct model *model,
			 const struct options *options);
double mean_ns(const struct sums *sums);

#endif
