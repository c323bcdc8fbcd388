/*
 * Merges all files of a trace by time: a heap of readers.  A reader is created
 * when the time of its file's first block has come and freed at the end of its
 * file.  Many threads that come and go therefore need only the memory of those
 * that live at the same time.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trace/merge.h"
#include "trace/reader.h"
#include "trace/trace.h"

struct source {
	double time_ns; /* time of @event, or of the file's begin */
	uint32_t file;
	struct trace_reader *reader; /* NULL: not created yet */
	bool has_event;
	struct trace_event event;
};

struct trace_merge {
	struct trace *trace;
	struct trace_range range;
	struct source *sources;
	uint32_t *heap; /* numbers of sources, the earliest first */
	uint32_t heap_count;
};

static bool is_before(const struct trace_merge *merge, uint32_t a, uint32_t b)
{
	const struct source *left = &merge->sources[a];
	const struct source *right = &merge->sources[b];

	return left->time_ns < right->time_ns ||
	       (left->time_ns == right->time_ns && a < b);
}

static void sink(struct trace_merge *merge, uint32_t at)
{
	uint32_t *heap = merge->heap, child, number = heap[at];

	while ((child = 2 * at + 1) < merge->heap_count) {
		if (child + 1 < merge->heap_count &&
		    is_before(merge, heap[child + 1], heap[child]))
			child++;
		if (!is_before(merge, heap[child], number))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = number;
}

/* Reads the next event of the file on top and moves the file to its place in
 * the heap. */
static void advance(struct trace_merge *merge)
{
	struct source *source = &merge->sources[merge->heap[0]];

	if (!source->reader)
		source->reader = trace_begin(merge->trace, source->file,
					     &merge->range);
	source->has_event = trace_next(source->reader, &source->event);
	if (source->has_event) {
		/* When a file goes on with a new thread, the calls that the old
		 * thread left open end at a time that may be long ago. */
		if (source->event.time_ns > source->time_ns)
			source->time_ns = source->event.time_ns;
	} else {
		trace_end(source->reader);
		source->reader = NULL;
		merge->heap[0] = merge->heap[--merge->heap_count];
	}
	if (merge->heap_count)
		sink(merge, 0);
}

struct trace_merge *trace_merge_begin(struct trace *trace,
				      const struct trace_range *range)
{
	struct trace_merge *merge = allocate(1, sizeof(*merge));
	uint32_t i;

	merge->trace = trace;
	merge->range = *range;
	merge->sources = allocate(trace->file_count, sizeof(*merge->sources));
	merge->heap = allocate(trace->file_count, sizeof(*merge->heap));
	for (i = 0; i < trace->file_count; i++) {
		merge->sources[i] = (struct source){
			.time_ns = trace_begins_ns(trace, i),
			.file = i,
		};
		merge->heap[merge->heap_count++] = i;
	}
	for (i = merge->heap_count; i-- > 0;)
		sink(merge, i);
	return merge;
}

bool trace_merge_next(struct trace_merge *merge, struct trace_event *event)
{
	struct source *source;

	/* Repeats until the file on top has an event ready: that event is the
	 * earliest. */
	while (merge->heap_count) {
		source = &merge->sources[merge->heap[0]];
		if (source->reader && source->has_event) {
			*event = source->event;
			event->time_ns = source->time_ns;
			source->has_event = false;
			return true;
		}
		advance(merge);
	}
	return false;
}

void trace_merge_end(struct trace_merge *merge)
{
	uint32_t i;

	for (i = 0; i < merge->trace->file_count; i++)
		if (merge->sources[i].reader)
			trace_end(merge->sources[i].reader);
	free(merge->sources);
	free(merge->heap);
	free(merge);
}
