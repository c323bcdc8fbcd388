/*
 * Turns the records of one file into events.  The content is not trusted: the
 * reader makes sure that each call that is left was entered, that each text has
 * an end, and that time does not go back.  Damage ends with its block, because
 * each block lists again which calls are open.
 *
 * A reader holds a window of the file and the open calls of each track.  Most
 * records become one event each, without a copy; the few that become several
 * events go through a queue.
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
#include "trace/filter.h"
#include "trace/gaps.h"
#include "trace/reader.h"
#include "trace/selection.h"
#include "trace/trace.h"
#include "trace/values.h"

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
	unsigned char window[WINDOW + 8];

	/* The state. */
	uint64_t time;		  /* clock units of the file */
	double time_ns, event_ns; /* @event_ns: time of the last call's event */
	double ns_offset, ns_unit;
	uint64_t first; /* begin of the process, in the same units */
	uint32_t thread, thread_ordinal;
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

static void blame(uint64_t *count, uint64_t *first, uint64_t offset)
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

/* Makes @size bytes at reader->at readable; bytes after the end of the block
 * are zero. */
static const unsigned char *look(struct trace_reader *reader, uint32_t size)
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
	reader->window_at = reader->at;
	reader->window_size = left <= WINDOW ? WINDOW + 8 : WINDOW;
	return reader->window;
}

static const struct process *process_of(const struct trace_reader *reader)
{
	return &reader->trace->recording->processes[reader->file->process];
}

/* Subtracts integers first, and converts afterwards: on a machine that has run
 * for a day, the clock in ns has more digits than a double. */
static void find_clock(struct trace_reader *reader)
{
	const struct process *process = process_of(reader);

	reader->ns_unit = process->unit_ns *
			  (double)(1u << reader->file->info.time_shift);
	reader->first = process->meta.first_clock >>
			reader->file->info.time_shift;
	reader->ns_offset = 0;
	if (process->has_meta)
		reader->ns_offset = (double)(process->meta.first_mono_ns -
					     reader->trace->start_mono_ns);
}

static double to_ns(const struct trace_reader *reader, uint64_t time)
{
	return (double)(int64_t)(time - reader->first) * reader->ns_unit +
	       reader->ns_offset;
}

/* Keeps the time of events from going back: records of a signal handler may
 * stand after a record that it interrupted. */
static void set_time(struct trace_reader *reader, uint64_t time)
{
	double time_ns = to_ns(reader, time);

	reader->time = time;
	if (time_ns > reader->time_ns)
		reader->time_ns = time_ns;
}

/* Whether a time is possible. */
static bool is_possible(const struct trace_reader *reader, uint64_t time)
{
	return time <= process_of(reader)->limit_clock >>
	       reader->file->info.time_shift;
}

static void take_time(struct trace_reader *reader, uint64_t time)
{
	if (is_possible(reader, time))
		set_time(reader, time);
	else
		blame(&reader->damaged, &reader->damage_offset, reader->at);
}

static void take_low_time(struct trace_reader *reader, uint32_t low)
{
	uint64_t time = (reader->time & ~(uint64_t)TIME_MASK) | low;

	if (time < reader->time)
		time += TIME_MASK + 1;
	set_time(reader, time);
}

/* --- events --- */

static struct trace_event *put(struct trace_reader *reader,
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

static struct call *innermost(const struct trace_reader *reader)
{
	return &reader->track->calls[reader->track->count - 1];
}

static void open_call(struct trace_reader *reader, uint32_t number)
{
	struct track *track = reader->track;

	GROW(track->calls, track->count, track->room);
	track->calls[track->count++] = (struct call){
		.number = number,
		.time_ns = reader->time_ns,
	};
	reader->is_entered = true;
}

static void fill_enter(struct trace_reader *reader, struct trace_event *event)
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
	struct call *call = innermost(reader);

	if (!call->result)
		return;
	GROW(reader->results, reader->result_count, reader->result_room);
	reader->results[reader->result_count++] = call->result;
	put(reader, TRACE_RESULT)->text = call->result;
	call->result = NULL;
}

static void empty_queue(struct trace_reader *reader)
{
	reader->queue_at = reader->queue_count = 0;
	while (reader->result_count)
		free(reader->results[--reader->result_count]);
}

static void put_enter(struct trace_reader *reader, uint32_t number)
{
	struct trace_event *event = put(reader, TRACE_ENTER);

	open_call(reader, number);
	fill_enter(reader, event);
	event->is_guessed = true;
}

/* Ends open calls of the current track until @count are left. */
static void put_leaves(struct trace_reader *reader, uint32_t count,
		       double time_ns, bool is_open)
{
	while (reader->track->count > count) {
		struct trace_event *event;

		put_result(reader);
		event = put(reader, TRACE_LEAVE);
		fill_leave(reader, event, time_ns);
		event->is_guessed = !is_open;
		event->is_open = is_open;
	}
}

static struct trace_event *put_wait(struct trace_reader *reader,
				    const struct shim_trace_wait *wait)
{
	struct trace_event *event = put(reader, TRACE_WAIT);

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
		event = put_wait(reader, &reader->wait);
		event->is_open = true;
		event->time_ns = time_ns;
		event->duration_ns = time_ns - reader->wait_ns;
	}
	reader->wait_ns = -1;
}

/* Ends all calls of the thread; their ends were not recorded. */
static void end_calls(struct trace_reader *reader, double time_ns)
{
	uint32_t i;

	put_open_wait(reader, time_ns);
	for (i = reader->track_count; i-- > 0;) {
		reader->track = &reader->tracks[i];
		put_leaves(reader, 0, time_ns, true);
		free(reader->track->calls);
	}
	reader->track_count = 0;
	map_free(&reader->by_id);
}

/* There may be a million coroutines, which take turns. */
static void use_track(struct trace_reader *reader, uint32_t id)
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

static const char *keep_name(const char name[16])
{
	return keep_text(name, strnlen(name, 16));
}

static void begin_thread(struct trace_reader *reader, uint32_t tid,
			 const char name[16])
{
	struct trace *trace = reader->trace;
	uint64_t key = (uint64_t)reader->file_index << 32 |
		       reader->thread_ordinal;
	uint32_t i;

	use_track(reader, 0);
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
			.name = keep_name(name),
			.begin_ns = reader->time_ns,
		};
	}
	reader->thread = i;
	put(reader, TRACE_THREAD);
}

/* --- records --- */

static void take_stack(struct trace_reader *reader, const unsigned char *at,
		       uint32_t size)
{
	struct shim_trace_stack stack;
	struct track *track = reader->track;
	uint32_t count = (size - (uint32_t)sizeof(stack)) / 4, same = 0, i;
	uint32_t numbers[SHIM_TRACE_STACK_MAX], skip = 0;

	memcpy(&stack, at, sizeof(stack));
	if (count > SHIM_TRACE_STACK_MAX) {
		blame(&reader->damaged, &reader->damage_offset, reader->at);
		return;
	}
	memcpy(numbers, at + sizeof(stack), count * sizeof(*numbers));
	/* The record lists only the innermost calls; calls further out are
	 * unchanged. */
	if (stack.more && track->count > count)
		skip = track->count - count;
	while (same < count && skip + same < track->count &&
	       track->calls[skip + same].number == numbers[same])
		same++;
	if (skip && same < count)
		same = skip = 0;
	put_leaves(reader, skip + same, reader->time_ns, false);
	for (i = same; i < count; i++)
		put_enter(reader, numbers[i]);
	if (reader->is_paused)
		put(reader, TRACE_RESUME);
	reader->is_paused = false;
}

/* Sets reader->text.  The first @skip bytes after the head are not part of
 * it. */
static void take_text(struct trace_reader *reader, const unsigned char *at,
		      uint32_t size, uint32_t skip)
{
	uint32_t length = size > skip ? size - skip : 0;

	if (length > TEXT_SIZE - 1)
		length = TEXT_SIZE - 1;
	memcpy(reader->text, at + skip, length);
	reader->text[length] = '\0';
}

static void put_text_event(struct trace_reader *reader, enum trace_kind kind,
			   const unsigned char *at, uint32_t size)
{
	take_text(reader, at, size, 2);
	put(reader, kind)->text = reader->text;
}

/* Values that do not match the call before them belong to a call that a signal
 * handler interrupted between recording the call and writing its values. */
static bool is_late(struct trace_reader *reader, uint32_t kind,
		    uint32_t function)
{
	if (reader->track->count &&
	    (kind == SHIM_VALUES_KIND_RESULT || reader->is_entered) &&
	    (!function || innermost(reader)->number == function))
		return false;
	blame(&reader->late, &reader->late_offset, reader->at);
	return true;
}

static void put_arguments(struct trace_reader *reader, uint32_t function)
{
	if (!is_late(reader, SHIM_VALUES_KIND_ARGUMENTS, function))
		put(reader, TRACE_ARGUMENTS)->text = reader->text;
}

/* The result is emitted when the call is left, because calls of a handler may
 * come before that. */
static void keep_result(struct trace_reader *reader, uint32_t function)
{
	struct call *call;

	if (is_late(reader, SHIM_VALUES_KIND_RESULT, function))
		return;
	call = innermost(reader);
	free(call->result);
	call->result = strdup(reader->text);
}

/* Sets reader->text; returns the number of the function, or 0. */
static uint32_t take_values(struct trace_reader *reader,
			    const unsigned char *at, uint32_t size,
			    uint32_t kind)
{
	const struct value_table *table =
		reader->trace->values[reader->file->process];
	uint32_t function;

	if (!trace_values_text(table, at, size, kind, reader->text, TEXT_SIZE,
			       &function))
		blame(&reader->undescribed, &reader->undescribed_offset,
		      reader->at);
	return function;
}

static void take_thread(struct trace_reader *reader, const unsigned char *at,
			bool is_new)
{
	struct shim_trace_thread thread;

	memcpy(&thread, at, sizeof(thread));
	if (is_new) {
		end_calls(reader, reader->event_ns);
		reader->thread_ordinal++;
		begin_thread(reader, thread.tid, thread.name);
		return;
	}
	reader->trace->threads[reader->thread].name = keep_name(thread.name);
	put(reader, TRACE_NAME);
}

static void take_lost(struct trace_reader *reader, const unsigned char *at)
{
	struct shim_trace_lost lost;
	struct trace_event *event;

	memcpy(&lost, at, sizeof(lost));
	event = put(reader, TRACE_LOST);
	event->count = lost.calls;
	event->cause = lost.cause < SHIM_LOST_CAUSES ? lost.cause :
						       SHIM_LOST_OTHER;
}

static void take_counter(struct trace_reader *reader, const unsigned char *at,
			 uint32_t size)
{
	struct shim_trace_counter counter;
	struct trace_event *event;

	memcpy(&counter, at, sizeof(counter));
	take_text(reader, at, size, sizeof(counter));
	event = put(reader, TRACE_COUNTER);
	event->text = reader->text;
	event->value = counter.value;
}

static void take_wait(struct trace_reader *reader, const unsigned char *at,
		      bool has_ended)
{
	const struct process *process = process_of(reader);
	struct trace_event *event;
	struct shim_trace_wait wait;
	double waited;

	memcpy(&wait, at, sizeof(wait));
	if (!has_ended) {
		reader->wait = wait;
		reader->wait_ns = reader->time_ns;
		return;
	}
	reader->wait_ns = -1;
	waited = process_ns(process, wait.waited);
	event = put_wait(reader, &wait);
	event->duration_ns = fmin(waited, reader->time_ns);
}

static uint32_t least_size(uint32_t kind)
{
	switch (kind) {
	case SHIM_TRACE_TIME:
	case SHIM_TRACE_ENTER_LONG:
	case SHIM_TRACE_TRACK:
	case SHIM_TRACE_TRACK_NEW:
	case SHIM_TRACE_STACK:
	case SHIM_TRACE_LOST: return 8;
	case SHIM_TRACE_THREAD:
	case SHIM_TRACE_NAME: return sizeof(struct shim_trace_thread);
	case SHIM_TRACE_COUNTER: return sizeof(struct shim_trace_counter);
	case SHIM_TRACE_WAIT_BEGIN:
	case SHIM_TRACE_WAIT: return sizeof(struct shim_trace_wait);
	case SHIM_TRACE_ARGUMENTS_RAW:
	case SHIM_TRACE_RESULT_RAW: return sizeof(struct shim_trace_values);
	default: return 2;
	}
}

static void take_special(struct trace_reader *reader, uint32_t kind,
			 const unsigned char *at, uint32_t size)
{
	uint64_t word = 0;

	memcpy(&word, at, size < sizeof(word) ? size : sizeof(word));
	switch (kind) {
	case SHIM_TRACE_TIME:
		word = (reader->time >> 48 << 48) | word >> 16;
		if (reader->time > 1ull << 47 &&
		    word < reader->time - (1ull << 47))
			word += 1ull << 48;
		take_time(reader, word);
		break;
	case SHIM_TRACE_ENTER_LONG:
		take_low_time(reader, word >> 48 & TIME_MASK);
		put(reader, TRACE_ENTER);
		open_call(reader, (uint32_t)(word >> 16));
		fill_enter(reader, &reader->queue[reader->queue_count - 1]);
		break;
	case SHIM_TRACE_UNWOUND: reader->is_unwound = true; break;
	case SHIM_TRACE_TRACK: use_track(reader, (uint32_t)(word >> 16)); break;
	case SHIM_TRACE_TRACK_NEW:
		use_track(reader, (uint32_t)(word >> 16));
		put_leaves(reader, 0, reader->time_ns, true);
		break;
	case SHIM_TRACE_THREAD:
	case SHIM_TRACE_NAME:
		take_thread(reader, at, kind == SHIM_TRACE_THREAD);
		break;
	case SHIM_TRACE_ENDED: put(reader, TRACE_THREAD_END); break;
	case SHIM_TRACE_STACK: take_stack(reader, at, size); break;
	case SHIM_TRACE_PAUSE:
		put(reader, TRACE_PAUSE);
		reader->is_paused = true;
		break;
	case SHIM_TRACE_LOST: take_lost(reader, at); break;
	case SHIM_TRACE_ARGUMENTS:
		take_text(reader, at, size, 2);
		put_arguments(reader, 0);
		break;
	case SHIM_TRACE_RESULT:
		take_text(reader, at, size, 2);
		keep_result(reader, 0);
		break;
	case SHIM_TRACE_ARGUMENTS_RAW:
		put_arguments(reader, take_values(reader, at, size,
						  SHIM_VALUES_KIND_ARGUMENTS));
		break;
	case SHIM_TRACE_RESULT_RAW:
		keep_result(reader, take_values(reader, at, size,
						SHIM_VALUES_KIND_RESULT));
		break;
	case SHIM_TRACE_MARK:
		put_text_event(reader, TRACE_MARK, at, size);
		break;
	case SHIM_TRACE_RANGE_BEGIN:
		put_text_event(reader, TRACE_RANGE_BEGIN, at, size);
		break;
	case SHIM_TRACE_RANGE_END:
		put_text_event(reader, TRACE_RANGE_END, at, size);
		break;
	case SHIM_TRACE_COUNTER: take_counter(reader, at, size); break;
	case SHIM_TRACE_WAIT_BEGIN: take_wait(reader, at, false); break;
	case SHIM_TRACE_WAIT: take_wait(reader, at, true); break;
	default: break;
	}
}

/* Counts the bytes after a damaged record in its block, without zeros at the
 * end. */
static uint64_t count_unread(struct trace_reader *reader)
{
	uint64_t begin = reader->at, used = begin, word;

	for (; reader->at + 2 <= reader->end; reader->at += 8) {
		memcpy(&word, look(reader, 8), sizeof(word));
		if (word)
			used = reader->at + 8;
	}
	return (used < reader->end ? used : reader->end) - begin;
}

/* Reads a record other than a short enter or leave; an invalid record ends the
 * block. */
static void take_other(struct trace_reader *reader, uint32_t head)
{
	uint32_t kind = head >> 2 & 63, size = (head >> 8) * 2;
	const unsigned char *at = look(reader, 8);
	uint16_t units;

	if (size == 0) {
		memcpy(&units, at + 2, sizeof(units));
		size = units * 2u;
	}
	if (kind == 0 || size < least_size(kind) ||
	    size > reader->end - reader->at || size > WINDOW) {
		blame(&reader->damaged, &reader->damage_offset, reader->at);
		reader->damage.damaged++;
		reader->damage.bytes += count_unread(reader);
		reader->at = reader->end;
		return;
	}
	take_special(reader, kind, look(reader, size), size);
	reader->at += size;
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
	memcpy(&header, look(reader, sizeof(header)), sizeof(header));
	take_time(reader, header.time);
	if (is_first || header.thread != reader->thread_ordinal) {
		if (!is_first)
			end_calls(reader, reader->event_ns);
		reader->thread_ordinal = header.thread;
		begin_thread(reader, header.tid, header.name);
	}
	use_track(reader, header.track);
	reader->at += sizeof(header);
	return true;
}

/* Zeros are records that were never written; most are at the end of a block. */
static void skip_zeros(struct trace_reader *reader)
{
	uint64_t word;

	reader->at += 2;
	while (reader->at + 8 <= reader->end) {
		memcpy(&word, look(reader, 8), sizeof(word));
		if (word)
			return;
		reader->at += 8;
	}
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
		take_time(reader, time);
		put(reader, TRACE_ENTER);
		open_call(reader, (uint32_t)waiting[i].function);
		fill_enter(reader, &reader->queue[reader->queue_count - 1]);
	}
}

static void end_file(struct trace_reader *reader)
{
	double end_ns = to_ns(reader, process_of(reader)->end_clock >>
					      reader->file->info.time_shift);

	if (reader->is_over)
		return;
	reader->is_over = true;
	if (reader->track)
		enter_waiting(reader);
	if (reader->track)
		end_calls(reader,
			  end_ns > reader->time_ns ? end_ns : reader->time_ns);
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
		at = look(reader, 4);
		memcpy(&head, at, sizeof(head));
		if (head & SHIM_TRACE_LEAVE) {
			take_low_time(reader, head >> 1);
			if (reader->track->count && innermost(reader)->result) {
				put_result(reader);
				continue;
			}
			reader->at += 2;
			if (reader->track->count) {
				fill_leave(reader, event, reader->time_ns);
				return true;
			}
			blame(&reader->unmatched, &reader->unmatched_offset,
			      reader->at - 2);
		} else if (head & SHIM_TRACE_ENTER) {
			memcpy(&word, at, sizeof(word));
			take_low_time(reader, word >> 2 & TIME_MASK);
			reader->at += 4;
			open_call(reader, word >> 17);
			fill_enter(reader, event);
			return true;
		} else if (head) {
			take_other(reader, head);
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

	put(reader, TRACE_THREAD)->time_ns = reader->range.from_ns;
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
			*put(reader, TRACE_ENTER) = event;
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
		end_calls(reader, reader->range.to_ns);
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
		*put(reader, first.kind) = first;
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

static bool next(struct trace_reader *reader, struct trace_event *event)
{
	if (reader->range.from_ns <= 0 && reader->range.to_ns == 0)
		return next_event(reader, event);
	return next_in_range(reader, event);
}

static bool next_call(struct trace_reader *reader, struct trace_event *event)
{
	return reader->filter ?
		       trace_filter_next(reader->filter, reader, event, next) :
		       next(reader, event);
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
		warn("%s: at offset %" PRIu64 ": not a record (and %" PRIu64
		     " more like it); what is behind it in its block is "
		     "unknown",
		     name, reader->damage_offset, reader->damaged - 1);
	if (reader->late)
		warn("%s: at offset %" PRIu64 ": what a call got or returns "
		     "that a signal handler came into (and %" PRIu64 " more "
		     "like it): it is left out",
		     name, reader->late_offset, reader->late - 1);
	if (reader->undescribed)
		warn("%s: at offset %" PRIu64 ": arguments or a result that "
		     "N.values does not describe (and %" PRIu64 " more like "
		     "it)",
		     name, reader->undescribed_offset, reader->undescribed - 1);
	if (reader->unmatched && !reader->file->info.ring_size)
		warn("%s: at offset %" PRIu64 ": a call ends that never began "
		     "(and %" PRIu64 " more like it)",
		     name, reader->unmatched_offset, reader->unmatched - 1);
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
