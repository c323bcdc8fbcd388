/* The database of profrun history: runs, functions, and their figures. */
#ifndef REPORT_HISTORY_STORE_H
#define REPORT_HISTORY_STORE_H

#include <stdbool.h>
#include <stdint.h>

struct model;
struct store;

/* Opens the database; dies if it is none, or if it is missing and @is_for_adding is
 * false. */
struct store *store_open(const char *path, bool is_for_adding);
void store_close(struct store *store);

/* Around store_add(): all of the runs are added, or none if the program ends before. */
void store_begin(struct store *store);
void store_commit(struct store *store);
/* Adds a run of @version.  Returns false if it is there already; dies if the database has
 * runs of another program. */
bool store_add(struct store *store, const char *version,
	       const struct model *model);

/* A version, and its runs in store_runs.values. */
struct store_version {
	const char *name;
	uint32_t first, count;
};

/* All runs, by version; versions by their first run. */
struct store_runs {
	const char *program;
	int64_t *ids;
	double *times; /* of the whole run, in ns */
	uint32_t count, room;
	struct store_version *versions;
	uint32_t version_count, version_room;
};

void store_read_runs(struct store *store, struct store_runs *runs);
void store_free_runs(struct store_runs *runs);

struct store_function {
	int64_t id;
	const char *name, *object;
	double mean_ns; /* its self time over all runs */
};

/* The functions of that name, with or without parameters; all if @name is NULL, those
 * with the most self time first. */
struct store_function *store_functions(struct store *store, const char *name,
				       uint32_t *count);

/* The self time (or total time) of a function in each run, in ns; 0 where it was not
 * called. */
void store_read_times(struct store *store, const struct store_runs *runs,
		      int64_t function, bool is_total, double *times);

#endif
