/*
 * monitor(3): counters of samples, PROFDIR and PROFFLAGS, and the files.
 *
 * A *set* is some ranges of code with their counters.  The process has one set; with
 * -threads, each thread has one.  The sampler's handler changes counters by atomic
 * operations.  All other code that changes sets holds the state lock.
 */
#ifndef SHIM_MONITOR_H
#define SHIM_MONITOR_H

#include <shim/shim.h>
#include <stdbool.h>

#define MONITOR_PATH_SIZE  2048
#define MONITOR_NAMES_MAX  32
#define MONITOR_RANGES_MAX 512

/* --- PROFFLAGS: monitor_flags.c --- */

enum monitor_pids { MONITOR_PIDS_DEFAULT, MONITOR_PIDS_ON, MONITOR_PIDS_OFF };

struct monitor_flags {
	bool is_given; /* the variable is set */
	bool disable_default, threads, all;
	uint32_t step; /* bytes of code for each counter; 0: all code */
	int signal;    /* for -sigdump; 0: none */
	enum monitor_pids pids;
	const char *directory; /* from -dirname, or NULL */
	const char *included[MONITOR_NAMES_MAX];
	const char *excluded[MONITOR_NAMES_MAX];
	uint32_t included_count, excluded_count;
};

/* Reads PROFFLAGS; logs errors in it. */
void monitor_read_flags(struct monitor_flags *flags);
/* Whether one of @names is the path of @image, the last part of the path, or its
 * soname.  The caller must have pinned @image. */
struct image_entry;
bool monitor_is_named(const char *const *names, uint32_t count,
		      const struct image_entry *image);

/* The current value of PROFDIR; @path is "" if the variable is empty or not set. */
struct monitor_directory {
	bool is_set;
	char path[MONITOR_PATH_SIZE];
};
void monitor_read_directory(struct monitor_directory *directory);

/* Stores the program's name, which the program may overwrite later. */
void monitor_remember_program(void);

/* This process is a child: from now on, the names of its files contain its process id. */
void monitor_name_child(void);

/* Stores the name of a file in @name, by the table of section 5.2 of the specification.
 * @thread: the thread's number with -threads, else 0.  Returns 0 or -ENAMETOOLONG. */
int monitor_name(const struct monitor_flags *flags,
		 const struct monitor_directory *directory, bool is_gmon,
		 uint64_t thread, char name[MONITOR_PATH_SIZE]);

/* --- sets --- */

struct monitor_range {
	uintptr_t low, high; /* the code whose samples count */
	uintptr_t base, end; /* the code that the counters cover */
	uintptr_t bias;	     /* of its object */
	uintptr_t entry;     /* the entry point of the object, in its file */
	uint64_t step; /* bytes for each counter; 0: the program's counters */
	uint64_t bins;
	uint32_t width; /* of a counter: 2 or 4 */
	void *counters;
	uint64_t saturated;
	bool is_gone; /* its object was unloaded */
	char path[MONITOR_PATH_SIZE / 2];
};

struct monitor_set {
	struct monitor_set *next; /* in the list of threads' sets */
	size_t size;		  /* of its memory */
	uint64_t thread;	  /* the thread's number; 0: for the process */
	int starter;		  /* tid of the thread that started it */
	bool counts;
	bool is_stopped;  /* by monitor(0), which has written it */
	uint64_t outside; /* samples in no range; unused if @kept is set */
	struct shim_histogram *kept; /* its counters, in the recording */
	uint32_t range_count;
	struct monitor_range ranges[];
};

struct monitor_wish {
	uintptr_t low, high;
	void *counters; /* the program's; NULL: allocate them */
	size_t size;	/* of @counters */
};

/* --- making sets, and counting in them: monitor_set.c --- */

struct monitor_request {
	const struct monitor_wish *wishes;
	uint32_t count;
	uint32_t width; /* of the program's counters */
	bool by_default;
};

/* Returns 0; -EINVAL if a wished range is not code of a loaded object, or if ranges
 * overlap. */
int monitor_check(const struct monitor_request *request);
/* Makes a set that does not count yet.  State lock held. */
int monitor_make_set(const struct monitor_flags *flags,
		     const struct monitor_request *request,
		     struct monitor_set **set);
/* Whether @set has the wished ranges and counters. */
bool monitor_is_like(const struct monitor_set *set,
		     const struct monitor_request *request);
/* Allocates counters for the ranges, in the recording if possible.  Returns 0 or -errno. */
int monitor_give_counters(struct monitor_set *set);
/* Whether the counters of @range are the program's. */
bool monitor_is_given(const struct monitor_range *range);
void monitor_free_set(struct monitor_set *set);
/* Adds @count at @pc; false if no range contains @pc.  Async. */
bool monitor_add_to(struct monitor_set *set, uintptr_t pc, uint32_t count);
/* The range of an image's code and its entry point, as addresses in its file. */
bool monitor_find_code(const struct image_entry *image, uintptr_t *low,
		       uintptr_t *high, uintptr_t *entry);

/* --- the functions of <shim/compat/mon.h>, and default profiling: monitor.c --- */

/* Starts default profiling if PROFDIR, PROFFLAGS or pchist (<shim/builtin.h>) request it.
 * @establish installs monitor_signal as the handler of -sigdump's signal.  Called in shim's
 * constructor. */
void monitor_load(void (*establish)(int signal));
/* Writes the files at the end of the process. */
void monitor_finish(void);

/* The functions of <shim/compat/mon.h>.  Each returns 0, the result of the function, or -errno. */
int monitor_start(uintptr_t low, uintptr_t high);
int monitor_start_in(const struct monitor_wish *wishes, uint32_t count,
		     bool is_wide);
int monitor_stop(void);
int monitor_control(bool on);
int monitor_write(void);
int monitor_add(uintptr_t pc, uint32_t count);

/* --- counters in the recording: monitor_kept.c --- */

/* Allocates the counters of @set in the recording; false if that is impossible. */
bool monitor_keep(struct monitor_set *set);
/* Stores in the recording how to write the set's file @name, for `profrun finish` after
 * the program was killed. */
void monitor_keep_name(struct monitor_set *set, const char *name, bool is_gmon,
		       uint32_t rate_hz);
/* Stores in the recording whether the set's file is complete. */
void monitor_keep_done(struct monitor_set *set, bool done);

/* --- arcs of programs compiled with -pg: monitor_arcs.c --- */

struct monitor_arc {
	uintptr_t from, self; /* the return address; an address in the callee */
	uint64_t calls;
	uint64_t written; /* calls in the file that is being written */
};

/* Counts a call of the function that contains @self; it returns to @from. */
void monitor_count_arc(uintptr_t from, uintptr_t self)
	__attribute__((visibility("hidden")));
/* The arc after @arc, or the first for NULL; NULL at the end. */
struct monitor_arc *monitor_next_arc(struct monitor_arc *arc);
void monitor_forget_arcs(void);
/* The number of calls that had no room in the table. */
uint64_t monitor_lost_arcs(void);
/* Whether monitor_count_arc counts calls. */
extern bool monitor_counts_arcs __attribute__((visibility("hidden")));

/* --- files: monitor_file.c --- */

/* The parameters of writing a set. */
struct monitor_output {
	const char *name; /* of the set's file */
	bool is_gmon;
	bool zeroes;   /* subtract the written counts from the counters */
	bool has_arcs; /* the set belongs to the process */
	uint32_t rate_hz;
};

/* Writes the files of @set.  Returns 0; -errno if a file fails, whose counts stay.
 * State lock held. */
int monitor_write_set(struct monitor_set *set,
		      const struct monitor_output *output);

#endif
