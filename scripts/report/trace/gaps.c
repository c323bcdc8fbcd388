/*
 * Reads the times when threads had no processor (profrun --gaps, struct
 * shim_switch) and pairs begins with ends.  A gap lies between two events of
 * its thread, because a thread without a processor records nothing.  The two
 * clocks may disagree slightly; the times of the events win.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/search.h"
#include "base/messages.h"
#include "read/files.h"
#include "read/process.h"
#include "read/recording.h"
#include "trace/clocks.h"
#include "trace/counters.h"
#include "trace/gaps.h"
#include "trace/trace.h"

/* 48 MB, and the same again while they are sorted. */
#define SWITCHES_MAX 2000000u

static int compare_threads(uint32_t part, uint32_t pid, uint32_t tid,
			   const struct trace_gap *other)
{
	if (part != other->part)
		return part < other->part ? -1 : 1;
	if (pid != other->pid)
		return pid < other->pid ? -1 : 1;
	return tid < other->tid ? -1 : tid > other->tid;
}

static int compare_gaps(const void *left, const void *right)
{
	const struct trace_gap *a = left, *b = right;
	int order = compare_threads(a->part, a->pid, a->tid, b);

	if (order)
		return order;
	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	return a->counter && b->counter ? strcmp(a->counter, b->counter) : 0;
}

static void sort(struct trace *trace)
{
	if (trace->gap_count)
		qsort(trace->gaps, trace->gap_count, sizeof(*trace->gaps),
		      compare_gaps);
}

static bool read_head(const char *name, int fd, struct shim_gaps *head)
{
	if (pread(fd, head, sizeof(*head), 0) != sizeof(*head)) {
		warn("%s: cut in its header", name);
		return false;
	}
	if (memcmp(head->magic, SHIM_GAPS_MAGIC, sizeof(head->magic)) ||
	    head->header_size < sizeof(*head) || head->header_size > 4096) {
		warn("%s: at offset 0: not a shim_gaps", name);
		return false;
	}
	check_version(name, head->version);
	if (head->lost)
		warn("%s: the kernel has dropped %" PRIu64 " switches: not all "
		     "gaps are shown",
		     name, head->lost);
	return true;
}

/* Before they are paired, the kind distinguishes begins of gaps from ends. */
static void add_switch(struct trace *trace, uint32_t part,
		       const struct shim_switch *said)
{
	GROW(trace->gaps, trace->gap_count, trace->gap_room);
	trace->gaps[trace->gap_count++] = (struct trace_gap){
		.part = part,
		.pid = said->pid,
		.tid = said->tid,
		.kind = said->kind,
		.from_ns = trace_clocks_part_ns(trace, part, said->mono_ns),
	};
}

static void read_switches(struct trace *trace, uint32_t part, const char *name,
			  int fd)
{
	struct shim_switch said[512];
	struct shim_gaps head;
	uint64_t at;
	ssize_t got;

	if (!read_head(name, fd, &head))
		return;
	for (at = head.header_size;; at += (uint64_t)got) {
		got = pread(fd, said, sizeof(said), (off_t)at);
		if (got < (ssize_t)sizeof(*said))
			return;
		got -= got % (ssize_t)sizeof(*said);
		for (ssize_t i = 0; i < got / (ssize_t)sizeof(*said); i++) {
			if (trace->gap_count == SWITCHES_MAX) {
				warn("%s: at offset %" PRIu64
				     ": gaps from here "
				     "on are not shown: there are too many",
				     name, at);
				return;
			}
			add_switch(trace, part, &said[i]);
		}
	}
}

/* Pairs: a gap ends at the next switch of its thread. */
static void pair(struct trace *trace)
{
	uint32_t i, kept = 0;

	for (i = 0; i + 1 < trace->gap_count; i++) {
		struct trace_gap gap = trace->gaps[i];
		const struct trace_gap *next = &trace->gaps[i + 1];

		if ((gap.kind != SHIM_SWITCH_WAITS &&
		     gap.kind != SHIM_SWITCH_PREEMPTED) ||
		    next->kind != SHIM_SWITCH_ON ||
		    compare_threads(gap.part, gap.pid, gap.tid, next))
			continue;
		gap.to_ns = next->from_ns;
		trace->gaps[kept++] = gap;
	}
	trace->gap_count = kept;
}

static void link_gaps(struct trace *trace)
{
	const struct trace_gap *last = NULL;
	uint32_t i;

	for (i = 0; i < trace->gap_count; i++) {
		struct trace_gap *gap = &trace->gaps[i];
		bool is_same = last && !compare_threads(gap->part, gap->pid,
							gap->tid, last);

		gap->before = !gap->counter ? i + 1 :
			      is_same	    ? last->before :
					      0;
		last = gap;
	}
}

void trace_gaps_open(struct trace *trace)
{
	const struct recording *recording = trace->recording;
	uint32_t i;

	for (i = 0; i < recording->part_count; i++) {
		const char *part = recording->parts[i].name;
		const char *name = part ? keep_format("%s/%s/gaps",
						      recording->path, part) :
					  keep_format("%s/gaps",
						      recording->path);
		int fd;

		if (access(name, F_OK) != 0)
			continue;
		fd = open_in(AT_FDCWD, name, name);
		if (fd < 0)
			continue;
		read_switches(trace, i, name, fd);
		close(fd);
	}
	sort(trace);
	pair(trace);
	trace_counters_open(trace);
	sort(trace);
	link_gaps(trace);
}

void trace_gaps_add(struct trace *trace, const struct trace_gap *gaps,
		    uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		GROW(trace->gaps, trace->gap_count, trace->gap_room);
		trace->gaps[trace->gap_count++] = gaps[i];
	}
	sort(trace);
	link_gaps(trace);
}

static bool is_gap_of(const struct trace *trace, uint32_t gap,
		      const struct process *process, uint32_t tid)
{
	return gap < trace->gap_count &&
	       !compare_threads(process->part, process->pid, tid,
				&trace->gaps[gap]);
}

/* Whether a gap belongs to an earlier thread than @thread, or begins at or
 * before @time_ns. */
static bool is_before(const struct trace_gap *gap,
		      const struct process *process,
		      const struct trace_thread *thread, double time_ns)
{
	int order = compare_threads(process->part, process->pid, thread->tid,
				    gap);

	return order > 0 || (order == 0 && gap->from_ns <= time_ns);
}

static uint32_t find_gap(const struct trace *trace,
			 const struct trace_thread *thread, double time_ns)
{
	const struct process *process =
		&trace->recording->processes[thread->process];
	uint32_t low = FIRST_NOT(
		i, trace->gap_count,
		is_before(&trace->gaps[i], process, thread, time_ns));
	uint32_t before;

	/* An earlier gap may still be open here, with counters inside it. */
	before = low > 0 && is_gap_of(trace, low - 1, process, thread->tid) ?
			 trace->gaps[low - 1].before :
			 0;
	if (before && trace->gaps[before - 1].to_ns > time_ns)
		return before - 1;
	return is_gap_of(trace, low, process, thread->tid) ? low :
							     trace->gap_count;
}

void trace_gaps_begin(struct trace_gaps *gaps, const struct trace *trace,
		      const struct trace_event *event)
{
	gaps->thread = event->thread;
	gaps->begin_ns = gaps->last_ns = event->time_ns;
	gaps->next = find_gap(trace, &trace->threads[event->thread],
			      event->time_ns);
	if (gaps->next < trace->gap_count)
		gaps->owner = trace->gaps[gaps->next];
}

/* The next gap, if it begins before @now_ns. */
static const struct trace_gap *current_gap(const struct trace_gaps *gaps,
					   const struct trace *trace,
					   double now_ns)
{
	const struct trace_gap *next = &trace->gaps[gaps->next];

	return gaps->next < trace->gap_count && next->from_ns < now_ns &&
			       !compare_threads(next->part, next->pid,
						next->tid, &gaps->owner) ?
		       next :
		       NULL;
}

/* Makes an event of a system counter. */
static void tell_counter(const struct trace_gap *next,
			 const struct trace_event *event,
			 struct trace_event *counter)
{
	*counter = (struct trace_event){
		.kind = TRACE_COUNTER,
		.thread = event->thread,
		.track = event->track,
		.depth = event->depth + (event->kind == TRACE_LEAVE),
		.site = NONE,
		.time_ns = next->from_ns,
		.text = next->counter,
		.value = next->to_ns,
	};
}

bool trace_gaps_next(struct trace_gaps *gaps, const struct trace *trace,
		     const struct trace_event *event, struct trace_event *gap)
{
	const struct trace_gap *next;

	while ((next = current_gap(gaps, trace, event->time_ns))) {
		double from, to;

		if (next->counter) {
			gaps->next++;
			if (next->from_ns < gaps->begin_ns)
				continue;
			tell_counter(next, event, gap);
			return true;
		}
		from = fmax(next->from_ns, gaps->last_ns);
		to = fmin(next->to_ns, event->time_ns);

		/* The gap continues after this event: show it later. */
		if (from >= to && next->to_ns > event->time_ns)
			return false;
		gaps->next++;
		if (from >= to)
			continue;
		*gap = (struct trace_event){
			.kind = TRACE_GAP,
			.thread = event->thread,
			.track = event->track,
			.depth = event->depth + (event->kind == TRACE_LEAVE),
			.site = NONE,
			.time_ns = from,
			.duration_ns = to - from,
			.cause = next->kind,
			.text = next->late,
			.holder = next->late_thread,
		};
		return true;
	}
	return false;
}

const char *trace_gap_text(const struct trace_event *gap)
{
	static char text[100];
	const char *reason = gap->cause == GAP_LATE_SENDER ?
				     "which sends later" :
			     gap->cause == GAP_LATE_RECEIVER ?
				     "which receives later" :
				     "which comes last";

	if (gap->cause == SHIM_SWITCH_WAITS)
		return "no processor: waits";
	if (gap->cause == SHIM_SWITCH_PREEMPTED)
		return "no processor: preempted";
	snprintf(text, sizeof(text), "waits for %s, %s", gap->text, reason);
	return text;
}
