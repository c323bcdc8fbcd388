/*
 * The calls of a trace for the page of profrun html: lanes, one for each track of
 * each thread, and in them pieces in columns.  There may be very many calls, so
 * the shortest ones that follow each other become one piece, and what is below
 * them is in it.
 */
#ifndef REPORT_PAGE_TIMELINE_H
#define REPORT_PAGE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "model/model.h"
#include "page/columns.h"
#include "read/recording.h"
#include "trace/trace.h"

struct options;

struct timeline_lane {
	uint32_t thread; /* of trace.threads */
	uint32_t track;
	double begin_ns, end_ns;
	uint64_t calls;
	uint32_t pieces;
	struct columns columns; /* see put_piece() */
	double last_end;	/* of the piece before, rounded */
	uint32_t last_depth;
	struct timeline_run *runs; /* by depth */
	uint32_t run_room;
};

struct timeline_mark {
	uint32_t thread;
	/* MARK, RANGE_BEGIN, RANGE_END, COUNTER, PAUSE, RESUME, LOST */
	enum trace_kind kind;
	double time_ns, value; /* of a counter; or calls that were lost */
	const char *text;      /* or NULL */
};

/* A thread had no processor. */
struct timeline_gap {
	uint32_t thread;
	bool waits; /* else another one had it */
	double time_ns, duration_ns;
};

/* What a call that is a piece of its own got and returned. */
struct timeline_values {
	uint32_t lane, piece;
	const char *arguments, *result; /* or NULL */
};

struct timeline {
	struct recording recording;
	struct model model; /* its functions only */
	struct trace trace;
	struct timeline_lane *lanes;
	uint32_t lane_count, lane_room;
	struct map by_track; /* thread << 32 | track -> lane */
	struct timeline_mark *marks;
	uint32_t mark_count, mark_room;
	uint64_t marks_left_out;
	struct timeline_gap *gaps;
	uint32_t gap_count, gap_room;
	uint64_t gaps_left_out; /* shorter ones */
	struct timeline_values *values;
	uint32_t values_count, values_room;
	uint64_t values_left_out;
	double least_ns; /* what is shorter is merged; 0: nothing is */
	double gap_ns;	 /* more than that is between pieces */
	uint64_t calls, merged, pieces;
	double duration_ns;
};

/* False: there is no trace. */
bool timeline_read(struct timeline *timeline, const char *path,
		   const struct options *options);

#endif
