/*
 * Takes the records other than short enters and leaves, which reader.c takes: stacks,
 * tracks, threads, values, marks, counters and what was lost.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "read/process.h"
#include "read/recording.h"
#include "trace/reader.h"
#include "trace/reader_state.h"
#include "trace/trace.h"
#include "trace/values.h"

static void put_enter(struct trace_reader *reader, uint32_t number)
{
	struct trace_event *event = reader_put(reader, TRACE_ENTER);

	reader_open_call(reader, number);
	reader_fill_enter(reader, event);
	event->is_guessed = true;
}

static void take_stack(struct trace_reader *reader, const unsigned char *at,
		       uint32_t size)
{
	struct shim_trace_stack stack;
	struct track *track = reader->track;
	uint32_t count = (size - (uint32_t)sizeof(stack)) / 4, same = 0, i;
	uint32_t numbers[SHIM_TRACE_STACK_MAX], skip = 0;

	memcpy(&stack, at, sizeof(stack));
	if (count > SHIM_TRACE_STACK_MAX) {
		reader_blame(&reader->damaged, &reader->damage_offset,
			     reader->at);
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
	reader_put_leaves(reader, skip + same, reader->time_ns, false);
	for (i = same; i < count; i++)
		put_enter(reader, numbers[i]);
	if (reader->is_paused)
		reader_put(reader, TRACE_RESUME);
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
	reader_put(reader, kind)->text = reader->text;
}

/* Values that do not match the call before them belong to a call that a signal
 * handler interrupted between recording the call and writing its values. */
static bool is_late(struct trace_reader *reader, uint32_t kind,
		    uint32_t function)
{
	if (reader->track->count &&
	    (kind == SHIM_VALUES_KIND_RESULT || reader->is_entered) &&
	    (!function || reader_innermost(reader)->number == function))
		return false;
	reader_blame(&reader->late, &reader->late_offset, reader->at);
	return true;
}

/* Has the time of the call, so that no gap comes between, although arguments may have been
 * written later. */
static void put_arguments(struct trace_reader *reader, uint32_t function)
{
	struct trace_event *event;

	if (is_late(reader, SHIM_VALUES_KIND_ARGUMENTS, function))
		return;
	event = reader_put(reader, TRACE_ARGUMENTS);
	event->text = reader->text;
	event->time_ns = reader_innermost(reader)->time_ns;
}

/* The result is emitted when the call is left, because calls of a handler may
 * come before that. */
static void keep_result(struct trace_reader *reader, uint32_t function)
{
	struct call *call;

	if (is_late(reader, SHIM_VALUES_KIND_RESULT, function))
		return;
	call = reader_innermost(reader);
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
		reader_blame(&reader->undescribed, &reader->undescribed_offset,
			     reader->at);
	return function;
}

/* A THREAD that did not fit in one block is in the next block, whose header has begun
 * the same thread. */
static bool has_begun(struct trace_reader *reader, uint32_t tid)
{
	bool is_same = reader->begun_tid && reader->begun_tid == tid;

	reader->begun_tid = 0;
	return is_same;
}

static void take_thread(struct trace_reader *reader, const unsigned char *at,
			bool is_new)
{
	struct shim_trace_thread thread;

	memcpy(&thread, at, sizeof(thread));
	if (is_new && has_begun(reader, thread.tid))
		return;
	if (is_new) {
		reader_end_calls(reader, reader->event_ns);
		reader->thread_ordinal++;
		reader_begin_thread(reader, thread.tid, thread.name);
		return;
	}
	reader->trace->threads[reader->thread].name = reader_keep_name(
		thread.name);
	reader_put(reader, TRACE_NAME);
}

static void take_lost(struct trace_reader *reader, const unsigned char *at)
{
	struct shim_trace_lost lost;
	struct trace_event *event;

	memcpy(&lost, at, sizeof(lost));
	event = reader_put(reader, TRACE_LOST);
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
	event = reader_put(reader, TRACE_COUNTER);
	event->text = reader->text;
	event->value = counter.value;
}

static void take_wait(struct trace_reader *reader, const unsigned char *at,
		      bool has_ended)
{
	const struct process *process = reader_process_of(reader);
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
	event = reader_put_wait(reader, &wait);
	event->duration_ns = fmin(waited, reader->time_ns);
}

static void take_message(struct trace_reader *reader, const unsigned char *at)
{
	memcpy(&reader->message, at, sizeof(reader->message));
	reader_put(reader, TRACE_MESSAGE)->message = &reader->message;
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
	case SHIM_TRACE_MESSAGE: return sizeof(struct shim_trace_message);
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
		reader_take_time(reader, word);
		break;
	case SHIM_TRACE_ENTER_LONG:
		reader_take_low_time(reader, word >> 48 & TIME_MASK);
		reader_put(reader, TRACE_ENTER);
		reader_open_call(reader, (uint32_t)(word >> 16));
		reader_fill_enter(reader,
				  &reader->queue[reader->queue_count - 1]);
		break;
	case SHIM_TRACE_UNWOUND: reader->is_unwound = true; break;
	case SHIM_TRACE_TRACK:
		reader_use_track(reader, (uint32_t)(word >> 16));
		break;
	case SHIM_TRACE_TRACK_NEW:
		reader_use_track(reader, (uint32_t)(word >> 16));
		reader_put_leaves(reader, 0, reader->time_ns, true);
		break;
	case SHIM_TRACE_THREAD:
	case SHIM_TRACE_NAME:
		take_thread(reader, at, kind == SHIM_TRACE_THREAD);
		break;
	case SHIM_TRACE_ENDED:
		reader->begun_tid = 0;
		reader_put(reader, TRACE_THREAD_END);
		break;
	case SHIM_TRACE_STACK: take_stack(reader, at, size); break;
	case SHIM_TRACE_PAUSE:
		reader_put(reader, TRACE_PAUSE);
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
	case SHIM_TRACE_MESSAGE: take_message(reader, at); break;
	default: break;
	}
}

/* Counts the bytes after a damaged record in its block, without zeros at the
 * end. */
static uint64_t count_unread(struct trace_reader *reader)
{
	uint64_t begin = reader->at, used = begin, word;

	for (; reader->at + 2 <= reader->end; reader->at += 8) {
		memcpy(&word, reader_look(reader, 8), sizeof(word));
		if (word)
			used = reader->at + 8;
	}
	return (used < reader->end ? used : reader->end) - begin;
}

void reader_take_record(struct trace_reader *reader, uint32_t head)
{
	uint32_t kind = head >> 2 & 63, size = (head >> 8) * 2;
	const unsigned char *at = reader_look(reader, 8);
	uint16_t units;

	if (size == 0) {
		memcpy(&units, at + 2, sizeof(units));
		size = units * 2u;
	}
	if (kind == 0 || size < least_size(kind) ||
	    size > reader->end - reader->at || size > WINDOW) {
		reader_blame(&reader->damaged, &reader->damage_offset,
			     reader->at);
		reader->damage.damaged++;
		reader->damage.bytes += count_unread(reader);
		reader->at = reader->end;
		return;
	}
	take_special(reader, kind, reader_look(reader, size), size);
	reader->at += size;
}
