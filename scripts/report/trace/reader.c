/*
 * Turns the records of one file into events.  The content is not trusted: the
 * reader makes sure that each call that is left was entered, that each text has
 * an end, and that time does not go back.  Damage ends with its block, because
 * each block lists again which calls are open.
 *
 * A reader holds a window of the file and the open calls of each track.  Most
 * records become one event each, without a copy; the few that become several
 * events go through a queue.  records.c takes the less frequent records.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "read/process.h"
#include "read/recording.h"
#include "trace/clocks.h"
#include "trace/filter.h"
#include "trace/gaps.h"
#include "trace/reader.h"
#include "trace/reader_state.h"
#include "trace/selection.h"
#include "trace/trace.h"

void reader_blame(uint64_t *count, uint64_t *first, uint64_t offset)
{
	if ((*count)++ == 0)
		*first = offset;
}

/* --- the file --- */

static int open_file(const struct trace_reader *reader)
{
	return open(reader->file->name,
		    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/* Ten thousand threads have more files than a process may open. */
static ssize_t read_window(struct trace_reader *reader, uint32_t size)
{
	int fd = reader->fd >= 0 ? reader->fd : open_file(reader);
	ssize_t got;

	if (fd < 0) {
		if (!reader->is_gone)
			warn("%s: cannot open it again: %s", reader->file->name,
			     strerror(errno));
		reader->is_gone = true;
		return 0;
	}
	got = pread(fd, reader->window, size, (off_t)reader->at);
	if (fd != reader->fd)
		close(fd);
	return got;
}

const unsigned char *reader_look(struct trace_reader *reader, uint32_t size)
{
	uint64_t left = reader->end - reader->at;
	ssize_t got;
	uint32_t want;

	if (reader->at >= reader->window_at &&
	    reader->at + size <= reader->window_at + reader->window_size)
		return reader->window + (reader->at - reader->window_at);
	want = left < WINDOW ? (uint32_t)left : WINDOW;
	got = read_window(reader, want);
	if (got < 0)
		got = 0;
	/* A file that has shrunk reads as zero. */
	memset(reader->window + got, 0, WINDOW + 8 - (size_t)got);
	reader->is_read_again = false;
	reader->window_at = reader->at;
	reader->window_size = left <= WINDOW ? WINDOW + 8 : WINDOW;
	return reader->window;
}

const struct process *reader_process_of(const struct trace_reader *reader)
{
	return &reader->trace->recording->processes[reader->file->process];
}

/* Subtracts integers first, and converts afterwards: on a machine that has run
 * for a day, the clock in ns has more digits than a double. */
static void find_clock(struct trace_reader *reader)
{
	const struct process *process = reader_process_of(reader);

	reader->ns_unit = process->unit_ns *
			  (double)(1u << reader->file->info.time_shift);
	reader->first = process->meta.first_clock >>
			reader->file->info.time_shift;
	reader->ns_offset = 0;
	if (process->has_meta)
		reader->ns_offset = fmax(
			trace_clocks_ns(reader->trace, reader->file->process,
					process->meta.first_mono_ns),
			0);
}

static double to_ns(const struct trace_reader *reader, uint64_t time)
{
	return (double)(int64_t)(time - reader->first) * reader->ns_unit +
	       reader->ns_offset;
}

/* Keeps the time of events from going back: records of a signal handler may
 * stand after a record that it interrupted. */
static inline void set_time(struct trace_reader *reader, uint64_t time)
{
	double time_ns = to_ns(reader, time);

	reader->time = time;
	if (time_ns > reader->time_ns)
		reader->time_ns = time_ns;
}

/* Whether a time is possible. */
static bool is_possible(const struct trace_reader *reader, uint64_t time)
{
	return time <= reader_process_of(reader)->limit_clock >>
	       reader->file->info.time_shift;
}

void reader_take_time(struct trace_reader *reader, uint64_t time)
{
	if (is_possible(reader, time))
		set_time(reader, time);
	else
		reader_blame(&reader->damaged, &reader->damage_offset,
			     reader->at);
}

static inline void take_low_time(struct trace_reader *reader, uint32_t low)
{
	uint64_t time = (reader->time & ~(uint64_t)TIME_MASK) | low;

	if (time < reader->time)
		time += TIME_MASK + 1;
	set_time(reader, time);
}

void reader_take_low_time(struct trace_reader *reader, uint32_t low)
{
	take_low_time(reader, low);
}

/* --- events --- */

struct trace_event *reader_put(struct trace_reader *reader,
			       enum trace_kind kind)
{
	struct trace_event *event;

	GROW(reader->queue, reader->queue_count, reader->queue_room);
	event = &reader->queue[reader->queue_count++];
	reader->is_entered = false;
	*event = (struct trace_event){
		.kind = kind,
		.thread = reader->thread,
		.track = reader->track->id,
		.depth = reader->track->count,
		.site = NONE,
		.time_ns = reader->time_ns,
	};
	return event;
}

static uint32_t site_of(const struct trace_reader *reader, uint32_t number)
{
	const struct site_table *table =
		&reader->trace->tables[reader->file->process];

	return number < table->count ? table->sites[number] : table->unknown;
}

struct call *reader_innermost(const struct trace_reader *reader)
{
	return &reader->track->calls[reader->track->count - 1];
}

void reader_open_call(struct trace_reader *reader, uint32_t number)
{
	struct track *track = reader->track;

	GROW(track->calls, track->count, track->room);
	track->calls[track->count++] = (struct call){
		.number = number,
		.time_ns = reader->time_ns,
	};
	reader->is_entered = true;
}

void reader_fill_enter(struct trace_reader *reader, struct trace_event *event)
{
	struct track *track = reader->track;
	struct call *call = &track->calls[track->count - 1];

	*event = (struct trace_event){
		.kind = TRACE_ENTER,
		.thread = reader->thread,
		.track = track->id,
		.depth = track->count - 1,
		.site = site_of(reader, call->number),
		.time_ns = call->time_ns,
	};
	call->is_announced = true;
}

/* Pops the innermost call from its track. */
static void fill_leave(struct trace_reader *reader, struct trace_event *event,
		       double time_ns)
{
	struct track *track = reader->track;
	struct call *call = &track->calls[--track->count];

	*event = (struct trace_event){
		.kind = TRACE_LEAVE,
		.thread = reader->thread,
		.track = track->id,
		.depth = track->count,
		.site = site_of(reader, call->number),
		.time_ns = time_ns,
		.duration_ns = time_ns - call->time_ns,
		.is_unwound = reader->is_unwound,
	};
	reader->is_unwound = reader->is_entered = false;
	reader->event_ns = time_ns;
}

/* Emits the result of the innermost call, if it is known. */
static void put_result(struct trace_reader *reader)
{
	struct call *call = reader_innermost(reader);

	if (!call->result)
		return;
	GROW(reader->results, reader->result_count, reader->result_room);
	reader->results[reader->result_count++] = call->result;
	reader_put(reader, TRACE_RESULT)->text = call->result;
	call->result = NULL;
}

static void empty_queue(struct trace_reader *reader)
{
	reader->queue_at = reader->queue_count = 0;
	while (reader->result_count)
		free(reader->results[--reader->result_count]);
}

void reader_put_leaves(struct trace_reader *reader, uint32_t count,
		       double time_ns, bool is_open)
{
	while (reader->track->count > count) {
		struct trace_event *event;

		put_result(reader);
		event = reader_put(reader, TRACE_LEAVE);
		fill_leave(reader, event, time_ns);
		event->is_guessed = !is_open;
		event->is_open = is_open;
	}
}

struct trace_event *reader_put_wait(struct trace_reader *reader,
				    const struct shim_trace_wait *wait)
{
	struct trace_event *event = reader_put(reader, TRACE_WAIT);

	event->cause = wait->kind;
	event->is_failed = wait->failed != 0;
	event->holder = wait->holder;
	event->address = wait->lock;
	return event;
}

/* A thread that did nothing more after the begin of a wait waits until the end. */
static void put_open_wait(struct trace_reader *reader, double time_ns)
{
	struct trace_event *event;

	if (reader->wait_ns >= 0 && reader->wait_ns == reader->time_ns &&
	    time_ns >= reader->time_ns) {
		event = reader_put_wait(reader, &reader->wait);
		event->is_open = true;
		event->time_ns = time_ns;
		event->duration_ns = time_ns - reader->wait_ns;
	}
	reader->wait_ns = -1;
}

void reader_end_calls(struct trace_reader *reader, double time_ns)
{
	uint32_t i;

	put_open_wait(reader, time_ns);
	for (i = reader->track_count; i-- > 0;) {
		reader->track = &reader->tracks[i];
		reader_put_leaves(reader, 0, time_ns, true);
		free(reader->track->calls);
	}
	reader->track_count = 0;
	map_free(&reader->by_id);
}

void reader_use_track(struct trace_reader *reader, uint32_t id)
{
	uint32_t i;

	if (reader->track_count && reader->track->id == id)
		return;
	reader->is_entered = false;
	i = map_add(&reader->by_id, id, reader->track_count);
	if (i < reader->track_count) {
		reader->track = &reader->tracks[i];
		return;
	}
	GROW(reader->tracks, reader->track_count, reader->track_room);
	reader->track = &reader->tracks[reader->track_count++];
	*reader->track = (struct track){ .id = id };
}

const char *reader_keep_name(const char name[16])
{
	return keep_text(name, strnlen(name, 16));
}

void reader_begin_thread(struct trace_reader *reader, uint32_t tid,
			 const char name[16])
{
	struct trace *trace = reader->trace;
	uint64_t key = (uint64_t)reader->file_index << 32 |
		       reader->thread_ordinal;
	uint32_t i;

	reader_use_track(reader, 0);
	reader->is_paused = reader->is_unwound = reader->is_entered = false;
	/* Another reader may have found this thread before. */
	i = map_add(&trace->by_ordinal, key, trace->thread_count);
	if (i == trace->thread_count) {
		GROW(trace->threads, trace->thread_count, trace->thread_room);
		trace->threads[trace->thread_count++] = (struct trace_thread){
			.process = reader->file->process,
			.file = reader->file_index,
			.ordinal = reader->thread_ordinal,
			.tid = tid,
			.name = reader_keep_name(name),
			.begin_ns = reader->time_ns,
		};
	}
	reader->thread = i;
	reader_put(reader, TRACE_THREAD);
}

static void begin_pass(struct trace *trace, const char *doing)
{
	uint32_t i;

	trace->doing = doing;
	trace->blocks_read = trace->block_count = 0;
	for (i = 0; i < trace->file_count; i++)
		trace->block_count += trace->files[i].block_count;
}

static void tell_progress(const struct trace_reader *reader, uint32_t blocks)
{
	struct trace *trace = reader->trace;
	const char *doing = reader->range.doing;

	if (!doing)
		return;
	if (trace->doing != doing)
		begin_pass(trace, doing);
	trace->blocks_read += blocks;
	progress(doing, trace->blocks_read, trace->block_count);
}

/* Begins the next block; false if there is none. */
static bool begin_block(struct trace_reader *reader)
{
	struct trace_file *file = reader->file;
	struct shim_trace_block header;
	const struct trace_block *block;
	bool is_first = reader->track == NULL;

	if (reader->block == file->block_count)
		return false;
	block = &file->blocks[reader->block++];
	tell_progress(reader, 1);
	reader->at = block->offset;
	reader->end = block->end;
	reader->window_size = 0;
	memcpy(&header, reader_look(reader, sizeof(header)), sizeof(header));
	reader_take_time(reader, header.time);
	reader->begun_tid = 0;
	if (is_first || header.thread != reader->thread_ordinal) {
		if (!is_first)
			reader_end_calls(reader, reader->event_ns);
		reader->thread_ordinal = header.thread;
		reader->begun_tid = header.tid;
		reader_begin_thread(reader, header.tid, header.name);
	}
	reader_use_track(reader, header.track);
	reader->at += sizeof(header);
	return true;
}

static void pass_zeros(struct trace_reader *reader)
{
	uint64_t word;
	uint16_t head;

	memcpy(&head, reader_look(reader, 4), sizeof(head));
	if (head)
		return;
	reader->at += 2;
	while (reader->at + 8 <= reader->end) {
		memcpy(&word, reader_look(reader, 8), sizeof(word));
		if (word)
			return;
		reader->at += 8;
	}
}

/*
 * Zeros are records that were never written; most are at the end of a block.  A program
 * that runs may have written them after the window was read up to there, and the records
 * behind them before: such a window is read again, once.
 */
static void skip_zeros(struct trace_reader *reader)
{
	uint64_t begin = reader->at;

	pass_zeros(reader);
	if (reader->at + 8 > reader->end || reader->is_read_again)
		return;
	reader->at = begin;
	reader->window_size = 0;
	pass_zeros(reader);
	reader->is_read_again = true;
}

/* Enters calls that were open when the recording ended and had been too short
 * to be recorded before. */
static void enter_waiting(struct trace_reader *reader)
{
	uint64_t count = reader->file->info.waiting, i;
	struct shim_trace_waiting waiting[SHIM_TRACE_WAITING_MAX];
	int fd = count && !reader->is_paused ? open_file(reader) : -1;
	ssize_t got;

	if (fd < 0)
		return;
	got = pread(fd, waiting, sizeof(waiting),
		    4096 + (off_t)sizeof(struct shim_trace_info));
	close(fd);
	for (i = 0; i < count && i < SHIM_TRACE_WAITING_MAX &&
		    (size_t)got >= (i + 1) * sizeof(*waiting) && got > 0;
	     i++) {
		uint64_t time = waiting[i].clock >>
				reader->file->info.time_shift;

		if (time < reader->time)
			continue;
		reader_take_time(reader, time);
		reader_put(reader, TRACE_ENTER);
		reader_open_call(reader, (uint32_t)waiting[i].function);
		reader_fill_enter(reader,
				  &reader->queue[reader->queue_count - 1]);
	}
}

static void end_file(struct trace_reader *reader)
{
	double end_ns = to_ns(reader, reader_process_of(reader)->end_clock >>
					      reader->file->info.time_shift);

	if (reader->is_over)
		return;
	reader->is_over = true;
	if (reader->track)
		enter_waiting(reader);
	if (reader->track)
		reader_end_calls(reader, end_ns > reader->time_ns ?
						 end_ns :
						 reader->time_ns);
}

/* The next event, regardless of the range. */
static bool next_event(struct trace_reader *reader, struct trace_event *event)
{
	const unsigned char *at;
	uint16_t head;
	uint32_t word;

	for (;;) {
		if (reader->queue_at < reader->queue_count) {
			*event = reader->queue[reader->queue_at++];
			return true;
		}
		empty_queue(reader);
		if (reader->at + 2 > reader->end) {
			if (!begin_block(reader)) {
				end_file(reader);
				if (!reader->queue_count)
					return false;
			}
			continue;
		}
		at = reader_look(reader, 4);
		memcpy(&head, at, sizeof(head));
		if (head & SHIM_TRACE_LEAVE) {
			take_low_time(reader, head >> 1);
			if (reader->track->count &&
			    reader_innermost(reader)->result) {
				put_result(reader);
				continue;
			}
			reader->at += 2;
			if (reader->track->count) {
				fill_leave(reader, event, reader->time_ns);
				return true;
			}
			reader_blame(&reader->unmatched,
				     &reader->unmatched_offset, reader->at - 2);
		} else if (head & SHIM_TRACE_ENTER) {
			memcpy(&word, at, sizeof(word));
			take_low_time(reader, word >> 2 & TIME_MASK);
			reader->at += 4;
			reader_open_call(reader, word >> 17);
			reader_fill_enter(reader, event);
			return true;
		} else if (head) {
			reader_take_record(reader, head);
		} else {
			skip_zeros(reader);
		}
	}
}

/* --- a range of time --- */

/* The last block that begins before the range. */
static uint32_t find_block(const struct trace_reader *reader)
{
	const struct trace_file *file = reader->file;
	uint32_t i, found = 0;

	for (i = 0; i < file->block_count; i++)
		if (to_ns(reader, file->blocks[i].time) <=
		    reader->range.from_ns)
			found = i;
	return found;
}

/* Enters, at the begin of the range, the calls that are open then. */
static void enter_range(struct trace_reader *reader,
			const struct trace_event *first)
{
	struct trace_event event;
	uint32_t t, i;

	reader_put(reader, TRACE_THREAD)->time_ns = reader->range.from_ns;
	for (t = 0; t < reader->track_count; t++)
		for (i = 0; i < reader->tracks[t].count; i++) {
			struct call *call = &reader->tracks[t].calls[i];

			/* @first itself enters this call. */
			if (first->kind == TRACE_ENTER && !first->is_guessed &&
			    &reader->tracks[t] == reader->track &&
			    i == first->depth)
				continue;
			call->time_ns = reader->range.from_ns;
			event = (struct trace_event){
				.kind = TRACE_ENTER,
				.thread = reader->thread,
				.track = reader->tracks[t].id,
				.depth = i,
				.site = site_of(reader, call->number),
				.time_ns = reader->range.from_ns,
				.is_guessed = true,
			};
			*reader_put(reader, TRACE_ENTER) = event;
		}
}

static void leave_range(struct trace_reader *reader)
{
	empty_queue(reader);
	reader->at = reader->end = 0;
	tell_progress(reader, reader->file->block_count - reader->block);
	reader->block = reader->file->block_count;
	reader->is_over = true;
	if (reader->track)
		reader_end_calls(reader, reader->range.to_ns);
}

static bool next_in_range(struct trace_reader *reader,
			  struct trace_event *event)
{
	const struct trace_range *range = &reader->range;
	struct trace_event first;

	while (!reader->in_range) {
		if (!next_event(reader, event))
			return false;
		if (event->time_ns < range->from_ns ||
		    reader->queue_at < reader->queue_count)
			continue;
		reader->in_range = true;
		first = *event;
		/* The LEAVE has already popped its call. */
		if (first.kind == TRACE_LEAVE) {
			reader->track->count++;
			enter_range(reader, &first);
			reader->track->count--;
			first.duration_ns = first.time_ns - range->from_ns;
		} else {
			enter_range(reader, &first);
		}
		*reader_put(reader, first.kind) = first;
	}
	if (!next_event(reader, event))
		return false;
	if (range->to_ns == 0 || event->time_ns <= range->to_ns ||
	    reader->is_over)
		return true;
	/* The event is not shown: undo its effect on the track. */
	if (event->kind == TRACE_ENTER)
		reader->track->count--;
	if (event->kind == TRACE_LEAVE)
		reader->track->count++;
	leave_range(reader);
	return next_event(reader, event);
}

static bool next_of_file(struct trace_reader *reader, struct trace_event *event)
{
	if (reader->range.from_ns <= 0 && reader->range.to_ns == 0)
		return next_event(reader, event);
	return next_in_range(reader, event);
}

static bool next_call(struct trace_reader *reader, struct trace_event *event)
{
	return reader->filter ? trace_filter_next(reader->filter, reader, event,
						  next_of_file) :
				next_of_file(reader, event);
}

/* A gap between two events is known when the second event has been read. */
static bool next_with_gaps(struct trace_reader *reader,
			   struct trace_event *event)
{
	struct trace_gaps *gaps = &reader->gaps;

	if (!reader->has_lookahead) {
		reader->has_lookahead = next_call(reader, &reader->lookahead);
		if (!reader->has_lookahead)
			return false;
		if (gaps->thread != reader->lookahead.thread)
			trace_gaps_begin(gaps, reader->trace,
					 &reader->lookahead);
	}
	if (trace_gaps_next(gaps, reader->trace, &reader->lookahead, event))
		return true;
	*event = reader->lookahead;
	gaps->last_ns = event->time_ns;
	reader->has_lookahead = false;
	return true;
}

static bool next_of_all(struct trace_reader *reader, struct trace_event *event)
{
	return reader->trace->gap_count ? next_with_gaps(reader, event) :
					  next_call(reader, event);
}

bool trace_next(struct trace_reader *reader, struct trace_event *event)
{
	do
		if (!next_of_all(reader, event))
			return false;
	while (reader->selection &&
	       !trace_selection_takes(reader->selection, event));
	return true;
}

/* --- the reader --- */

struct trace_reader *trace_begin(struct trace *trace, uint32_t file,
				 const struct trace_range *range)
{
	struct trace_reader *reader = allocate(1, sizeof(*reader));

	reader->trace = trace;
	reader->file = &trace->files[file];
	reader->file_index = file;
	reader->range = *range;
	reader->in_range = range->from_ns <= 0;
	reader->gaps.thread = NONE;
	reader->wait_ns = -1;
	find_clock(reader);
	if (range->min_duration_ns > 0)
		reader->filter = trace_filter_begin(range->min_duration_ns);
	if (trace_selection_is_needed(range))
		reader->selection = trace_selection_begin(trace,
							  &reader->range);
	reader->fd = -1;
	if (trace->open_files < trace->open_max) {
		reader->fd = open_file(reader);
		trace->open_files += reader->fd >= 0;
	}
	if (!reader->in_range)
		reader->block = find_block(reader);
	tell_progress(reader, reader->block);
	return reader;
}

static void say_damage(const struct trace_reader *reader)
{
	const char *name = reader->file->name;

	if (reader->damaged)
		warn("%s: at offset %" PRIu64 ": not a record%s; the rest of "
		     "its block is unknown",
		     name, reader->damage_offset,
		     more_like_it(reader->damaged - 1));
	if (reader->late)
		warn("%s: at offset %" PRIu64
		     ": arguments or a result of a call that a signal handler interrupted%s: left out",
		     name, reader->late_offset, more_like_it(reader->late - 1));
	if (reader->undescribed)
		warn("%s: at offset %" PRIu64
		     ": arguments or a result that N.values does not describe%s",
		     name, reader->undescribed_offset,
		     more_like_it(reader->undescribed - 1));
	if (reader->unmatched && !reader->file->info.ring_size)
		warn("%s: at offset %" PRIu64
		     ": a call ends that never began%s",
		     name, reader->unmatched_offset,
		     more_like_it(reader->unmatched - 1));
}

static void free_calls(struct track *track)
{
	while (track->count)
		free(track->calls[--track->count].result);
	free(track->calls);
}

void trace_end(struct trace_reader *reader)
{
	uint32_t i;

	reader->file->damage.damaged = reader->damage.damaged;
	reader->file->damage.bytes = reader->damage.bytes;
	if (!reader->file->is_blamed)
		say_damage(reader);
	reader->file->is_blamed |= reader->damaged || reader->unmatched ||
				   reader->undescribed || reader->late;
	if (reader->fd >= 0) {
		close(reader->fd);
		reader->trace->open_files--;
	}
	for (i = 0; i < reader->track_count; i++)
		free_calls(&reader->tracks[i]);
	empty_queue(reader);
	map_free(&reader->by_id);
	free(reader->results);
	trace_filter_end(reader->filter);
	trace_selection_end(reader->selection);
	free(reader->tracks);
	free(reader->queue);
	free(reader);
}

uint64_t trace_last_clock(struct trace *trace, uint32_t index)
{
	struct trace_file *file = &trace->files[index];
	struct trace_reader *reader;
	struct trace_event event;
	uint64_t time;

	if (!file->block_count)
		return 0;
	reader = trace_begin(trace, index, &(struct trace_range){ 0 });
	reader->block = file->block_count - 1;
	while (!reader->is_over && next_event(reader, &event))
		;
	time = reader->time << file->info.time_shift;
	trace_end(reader);
	return time;
}

double trace_begins_ns(struct trace *trace, uint32_t index)
{
	struct trace_file *file = &trace->files[index];
	struct trace_reader reader = { .trace = trace, .file = file };

	if (!file->block_count)
		return 0;
	find_clock(&reader);
	return to_ns(&reader, file->blocks[0].time);
}
