/*
 * The state of a reader, which reader.c owns; records.c takes the less frequent records.
 */
#ifndef REPORT_TRACE_READER_STATE_H
#define REPORT_TRACE_READER_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "base/map.h"
#include "trace/gaps.h"
#include "trace/reader.h"
#include "trace/trace.h"

#define WINDOW	  16384u
#define TEXT_SIZE 512u
#define TIME_MASK ((1u << SHIM_TRACE_TIME_BITS) - 1)

struct call {
	uint32_t number;
	bool is_announced; /* its ENTER was passed on */
	double time_ns;
	char *result; /* its result, allocated, or NULL */
};

struct track {
	uint32_t id;
	uint32_t count, room;
	struct call *calls;
};

struct trace_reader {
	struct trace *trace;
	struct trace_file *file;
	uint32_t file_index;
	int fd; /* -1: the file is opened for each window */
	bool is_gone;
	struct trace_range range;
	struct trace_filter *filter;	   /* or NULL */
	struct trace_selection *selection; /* or NULL */
	bool in_range, is_over;

	/* The position. */
	uint32_t block; /* the next block */
	/* in the file: position and end of the current block */
	uint64_t at, end;
	uint64_t window_at;
	uint32_t window_size;
	bool is_read_again; /* the window */
	unsigned char window[WINDOW + 8];

	/* The state. */
	uint64_t time;		  /* clock units of the file */
	double time_ns, event_ns; /* @event_ns: time of the last call's event */
	double ns_offset, ns_unit;
	uint64_t first; /* begin of the process, in the same units */
	uint32_t thread, thread_ordinal;
	/* The tid of the thread that began with the header of the current block, until
	 * the thread ends or the next block begins; else 0. */
	uint32_t begun_tid;
	struct track *tracks;
	uint32_t track_count, track_room;
	struct map by_id;    /* tracks */
	struct track *track; /* the current track */
	bool is_unwound, is_paused;
	bool is_entered; /* the previous record was an ENTER */
	/* The last record of the thread, if it begins a wait. */
	struct shim_trace_wait wait;
	double wait_ns; /* when it began; -1: no wait began */
	char text[TEXT_SIZE];
	struct shim_trace_message message;
	char **results; /* texts of the events in the queue */
	uint32_t result_count, result_room;

	struct trace_event *queue;
	uint32_t queue_at, queue_count, queue_room;

	struct trace_gaps gaps;
	struct trace_event
		lookahead; /* the next event; gaps may come before it */
	bool has_lookahead;

	uint64_t damaged, damage_offset;
	struct trace_damage damage;
	uint64_t unmatched, unmatched_offset;
	uint64_t undescribed, undescribed_offset;
	uint64_t late, late_offset;
};

/* --- reader.c --- */

const struct process *reader_process_of(const struct trace_reader *reader);

/* Makes @size bytes at reader->at readable; bytes after the end of the block are zero. */
const unsigned char *reader_look(struct trace_reader *reader, uint32_t size);

/* Counts a damage at @offset, and stores the offset of the first. */
void reader_blame(uint64_t *count, uint64_t *first, uint64_t offset);

/* Sets the time of the next events: all of it, or the lowest bits. */
void reader_take_time(struct trace_reader *reader, uint64_t time);
void reader_take_low_time(struct trace_reader *reader, uint32_t low);

/* Adds an event to the queue, at the current time and depth. */
struct trace_event *reader_put(struct trace_reader *reader,
			       enum trace_kind kind);

/* Adds the event of a wait to the queue. */
struct trace_event *reader_put_wait(struct trace_reader *reader,
				    const struct shim_trace_wait *wait);

struct call *reader_innermost(const struct trace_reader *reader);
void reader_open_call(struct trace_reader *reader, uint32_t number);
/* Makes @event the ENTER of the innermost call. */
void reader_fill_enter(struct trace_reader *reader, struct trace_event *event);

/* Ends open calls of the current track until @count are left. */
void reader_put_leaves(struct trace_reader *reader, uint32_t count,
		       double time_ns, bool is_open);
/* Ends all calls of the thread; their ends were not recorded. */
void reader_end_calls(struct trace_reader *reader, double time_ns);

/* Switches to a track.  There may be a million coroutines, which take turns. */
void reader_use_track(struct trace_reader *reader, uint32_t id);
void reader_begin_thread(struct trace_reader *reader, uint32_t tid,
			 const char name[16]);
const char *reader_keep_name(const char name[16]);

/* --- records.c --- */

/* Reads a record other than a short enter or leave; an invalid record ends the
 * block. */
void reader_take_record(struct trace_reader *reader, uint32_t head);

#endif
