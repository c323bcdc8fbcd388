/*
 * monitor(3): what counts the samples, PROFDIR and PROFFLAGS, and the files.
 *
 * A *set* is some ranges of code with their counters: one for the process, or
 * with -threads one for each thread.  Counters are changed by atomic operations
 * only, in the handler of samples; everything else holds the state lock.
 */
#ifndef SHIM_MONITOR_H
#define SHIM_MONITOR_H

#include <shim/shim.h>
#include <stdbool.h>

#define MONITOR_PATH_SIZE 2048
#define MONITOR_NAMES_MAX 32
#define MONITOR_RANGES_MAX 512

/* --- PROFFLAGS: monitor_flags.c --- */

enum monitor_pids { MONITOR_PIDS_DEFAULT, MONITOR_PIDS_ON, MONITOR_PIDS_OFF };

struct monitor_flags {
	bool is_given;		/* the variable is set */
	bool disable_default, threads, all;
	uint32_t step;		/* bytes of code to a counter; 0: all of them */
	int signal;		/* of -sigdump; 0: none */
	enum monitor_pids pids;
	const char *directory;	/* of -dirname, or NULL */
	const char *included[MONITOR_NAMES_MAX];
	const char *excluded[MONITOR_NAMES_MAX];
	uint32_t included_count, excluded_count;
};

/* Reads the variable; what is wrong with it is logged. */
void monitor_read_flags(struct monitor_flags *flags);
/* Whether @image, which is pinned, is one of @names: a path, its last part, or
 * what the object calls itself. */
struct image_entry;
bool monitor_is_named(const char *const *names, uint32_t count,
		      const struct image_entry *image);

/* PROFDIR as it is now: NULL if it is not set, or empty. */
struct monitor_directory {
	bool is_set;
	char path[MONITOR_PATH_SIZE];
};
void monitor_read_directory(struct monitor_directory *directory);

/* The program's name, before it can write over it. */
void monitor_remember_program(void);

/* From now on this is a forked child: its files have its id in their names. */
void monitor_name_child(void);

/* The name of a file, by the table of 5.2.  @thread: its number with -threads,
 * else 0.  Returns 0 or -ENAMETOOLONG. */
int monitor_name(const struct monitor_flags *flags,
		 const struct monitor_directory *directory, bool is_gmon,
		 uint64_t thread, char name[MONITOR_PATH_SIZE]);

/* --- what is counted: monitor.c --- */

struct monitor_range {
	uintptr_t low, high;	/* what counts */
	uintptr_t base, end;	/* where the first and the last counter end */
	uintptr_t bias;		/* of its object ... */
	uintptr_t entry;	/* ... and where it begins to run, in its file */
	uint64_t step;		/* bytes to a counter; 0: by proportion */
	uint64_t bins;
	uint32_t width;		/* of a counter: 2 or 4 */
	void *counters;
	uint64_t saturated;
	bool is_gone;		/* its object was closed */
	char path[MONITOR_PATH_SIZE / 2];
};

struct monitor_set {
	struct monitor_set *next;	/* of all, for ever */
	size_t size;		/* of its memory */
	uint64_t thread;	/* its number, or 0: it is the process's */
	int starter;		/* tid of the thread that started it */
	bool counts;
	bool is_stopped;	/* by monitor(0): written, and counts nothing */
	uint64_t outside;	/* samples in none of them; if kept, see there */
	struct shim_histogram *kept;	/* its counters lie in the recording */
	uint32_t range_count;
	struct monitor_range ranges[];
};

struct monitor_wish {
	uintptr_t low, high;
	void *counters;		/* the program's, or NULL: make some */
	size_t size;		/* of them */
};

/* From our constructor: default profiling begins if PROFDIR or PROFFLAGS ask
 * for it.  @establish makes monitor_signal the handler of -sigdump's signal. */
void monitor_load(void (*establish)(int signal));
/* -p pchist: the same without them.  0, or -1 if the arguments are wrong. */
int pchist_start(const char *arguments);
/* The process ends: files are written. */
void monitor_finish(void);

/* What <mon.h> says of them; 0, what it returns, or -errno. */
int monitor_start(uintptr_t low, uintptr_t high);
int monitor_start_in(const struct monitor_wish *wishes, uint32_t count,
		     bool is_wide);
int monitor_stop(void);
int monitor_control(bool on);
int monitor_write(void);
int monitor_add(uintptr_t pc, uint32_t count);

/* --- counters in the recording: monitor_kept.c --- */

/* Makes the counters of @set there; false: somewhere else, then. */
bool monitor_keep(struct monitor_set *set);
/* How it is to be written if the program cannot; @name as it is now. */
void monitor_keep_name(struct monitor_set *set, const char *name, bool is_gmon,
		       uint32_t rate_hz);
/* The file is written, or there is more to write. */
void monitor_keep_done(struct monitor_set *set, bool done);

/* --- arcs of programs compiled with -pg: monitor_arcs.c --- */

struct monitor_arc {
	uintptr_t from, self;	/* a return address; in the function */
	uint64_t calls;
	uint64_t written;	/* of them, by who writes files */
};

/* A call of the function that holds @self returns to @from. */
void monitor_count_arc(uintptr_t from, uintptr_t self)
	__attribute__((visibility("hidden")));
/* The one after @arc, the first for NULL; NULL at the end. */
struct monitor_arc *monitor_next_arc(struct monitor_arc *arc);
void monitor_forget_arcs(void);
/* Calls that had no room in the table. */
uint64_t monitor_lost_arcs(void);
/* Whether calls are counted. */
extern bool monitor_counts_arcs __attribute__((visibility("hidden")));

/* --- files: monitor_file.c --- */

/* Numbers of a set that nobody changes any more, and how they are written. */
struct monitor_output {
	const char *name;	/* of the set's file */
	bool is_gmon;
	bool zeroes;		/* what was written is subtracted */
	bool has_arcs;		/* the set is the process's */
	uint32_t rate_hz;
};

/* 0, or -errno with what was counted still in place.  State lock held. */
int monitor_write_set(struct monitor_set *set,
		      const struct monitor_output *output);

#endif
