/* profrun top: a process that runs, once a second. */
#ifndef REPORT_SCREEN_TOP_H
#define REPORT_SCREEN_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "screen/snapshot.h"

struct options;
struct row;
struct screen;
struct top;
struct view;

/* The views lead to each other through this table. */
struct top_views {
	struct view *(*functions)(struct top *top);
	struct view *(*threads)(struct top *top);
	struct view *(*function)(struct top *top, uint64_t key,
				 const char *name);
};

struct top {
	const struct options *options;
	const char *path;    /* of the recording */
	const char *profrun; /* for ctl; NULL: unknown */
	uint32_t pid;
	double delay; /* seconds between snapshots; 0: top_delay() chooses */
	double spent; /* processor time until the last snapshot, in seconds */
	double costs[2]; /* that of the last two snapshots */
	const struct top_views *views;
	struct shot shot;
	/* The last snapshot and the one before it; memory is NULL: not taken yet. */
	struct snapshot now, before;
	uint64_t generation; /* counts snapshots */
	char warning[512];   /* of a snapshot, shown last */
	bool is_paused, has_ended;
	bool takes_again; /* the snapshot being taken replaces the last one */
	bool since_start; /* shows sums since the start, not the last interval */
	bool is_stopped, is_tracing; /* what was asked of ctl */
	uint64_t chosen; /* the function whose neighbours are wanted; 0: none */
};

/* The longest time between snapshots, in seconds. */
#define DELAY_MOST 60

void top_run(struct top *top);

/* The seconds from one snapshot to the next: one, or as many as keep top below 0.5 % of a
 * processor. */
double top_delay(const struct top *top);
/* Processor time of this process and of those that took snapshots, in seconds. */
double top_spent(const struct top *top);

/* Whether rates can be shown: there are two snapshots. */
bool top_has_rates(const struct top *top);
/* The seconds between the snapshots. */
double top_seconds(const struct top *top);
/* What was added between the snapshots, for each second; or all. */
double top_rate(const struct top *top, double now, double before);

/* Keys that all views of top have; false: @key is none. */
bool top_key(struct screen *screen, struct top *top, int key);
#define TOP_KEYS "1 functions 2 threads  p pause  i since start"
#define TOP_HELP \
	"\n1         functions\n" \
	"2         threads\n" \
	"p         pause, and go on\n" \
	"i         sums since the start instead of the last interval, and back\n" \
	"+ -       less often, more often\n" \
	"B         change the budget (--budget)\n" \
	"F         change which functions are recorded (-F)\n" \
	"r         stop recording calls, and start again\n" \
	"T         start the trace, and stop it (-p trace)\n" \
	"H         record a snapshot of the heap (-p memory)\n" \
	"          (B, F, r, T, H: the program was started with --control)\n"

/* Draws the line with what all functions do together. */
void top_draw_title(const struct top *top, const char *name, struct row *row);

struct view *live_functions_view(struct top *top);
struct view *live_threads_view(struct top *top);
struct view *live_function_view(struct top *top, uint64_t key,
				const char *name);

#endif
