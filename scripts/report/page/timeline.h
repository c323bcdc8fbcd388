/*
 * The calls of a trace for the page of profrun html: lanes, one for each track
 * of each thread, with pieces in columns.  There may be very many calls, so
 * consecutive short calls become one piece, which includes the calls below
 * them.
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
	uint32_t thread; /* number in trace.threads */
	uint32_t track;
	double begin_ns, end_ns;
	uint64_t calls;
	uint32_t pieces;
	struct columns columns; /* see put_piece() */
	double last_end;	/* end of the previous piece, rounded */
	uint32_t last_depth;
	struct timeline_run *runs; /* by depth */
	uint32_t run_room;
};

struct timeline_mark {
	uint32_t thread;
	/* MARK, RANGE_BEGIN, RANGE_END, COUNTER, PAUSE, RESUME, LOST */
	enum trace_kind kind;
	/* @value: of a counter, or the number of lost calls */
	double time_ns, value;
	const char *text; /* or NULL */
};

/* A time without a processor. */
struct timeline_gap {
	uint32_t thread;
	bool waits; /* waiting; false: preempted */
	double time_ns, duration_ns;
};

/* A message between processes. */
struct timeline_message {
	uint32_t from_thread, to_thread;
	double from_ns, to_ns;
	uint64_t bytes;
	int32_t tag;
};

/* Arguments and result of a call that is a piece of its own. */
struct timeline_values {
	uint32_t lane, piece;
	const char *arguments, *result; /* or NULL */
};

struct timeline {
	struct recording recording;
	struct model model; /* used for its functions only */
	struct trace trace;
	struct timeline_lane *lanes;
	uint32_t lane_count, lane_room;
	struct map by_track; /* thread << 32 | track -> lane */
	struct timeline_mark *marks;
	uint32_t mark_count, mark_room;
	uint64_t marks_left_out;
	struct timeline_gap *gaps;
	uint32_t gap_count, gap_room;
	uint64_t gaps_left_out;	   /* number of shorter gaps */
	struct trace_event *waits; /* their texts are not used */
	uint32_t wait_count, wait_room;
	uint64_t waits_left_out; /* number of shorter waits */
	struct timeline_message
		*messages; /* those that took the longest first */
	uint32_t message_count;
	uint64_t messages_left_out; /* that took less time */
	struct timeline_values *values;
	uint32_t values_count, values_room;
	uint64_t values_left_out;
	double least_ns; /* shorter calls are merged; 0: none */
	double gap_ns;	 /* a longer pause ends a run */
	uint64_t calls, merged, pieces;
	double duration_ns;
};

/* Returns false if there is no trace. */
bool timeline_read(struct timeline *timeline, const char *path,
		   const struct options *options);

#endif
