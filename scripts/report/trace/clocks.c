/*
 * Puts the clocks of several hosts on one time line.  A recording has two clocks
 * for the start of each process: CLOCK_MONOTONIC, which counts from the boot of
 * the host, and the time of day.  Their difference tells boots apart, also those
 * of hosts of the same name, and time namespaces.  Nothing in a recording tells how
 * far the times of day of two hosts differ, or how they drift apart:
 * trace_clocks_tell() says so.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/messages.h"
#include "read/process.h"
#include "read/recording.h"
#include "trace/clocks.h"
#include "trace/trace.h"

/* The process that has the same clock and a shift already, or NULL. */
static const struct process *find_clock(const struct process *const *clocks,
					uint32_t count,
					const struct process *process)
{
	uint32_t i;

	for (i = count; i-- > 0;)
		if (process_shares_clock(clocks[i], process))
			return clocks[i];
	return NULL;
}

/* The first clock is that of the trace. */
static void find_shifts(struct trace *trace)
{
	const struct recording *recording = trace->recording;
	const struct process **clocks = NULL;
	uint32_t room = 0, i;

	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i], *same;

		if (!process_has_boot(process))
			continue;
		same = find_clock(clocks, trace->clock_count, process);
		if (!same) {
			GROW(clocks, trace->clock_count, room);
			clocks[trace->clock_count++] = same = process;
		}
		trace->shift_ns[i] = (uint64_t)process_boot_ns(same) -
				     (uint64_t)process_boot_ns(clocks[0]);
	}
	free(clocks);
}

void trace_clocks_open(struct trace *trace)
{
	const struct recording *recording = trace->recording;
	uint64_t begin;
	uint32_t i;

	trace->shift_ns = allocate(recording->process_count,
				   sizeof(*trace->shift_ns));
	trace->clock_count = 0;
	trace->start_mono_ns = UINT64_MAX;
	trace->part_shift_ns = allocate(recording->part_count,
					sizeof(*trace->part_shift_ns));
	find_shifts(trace);
	for (i = recording->process_count; i-- > 0;)
		if (process_has_boot(&recording->processes[i]))
			trace->part_shift_ns[recording->processes[i].part] =
				trace->shift_ns[i];
	for (i = 0; i < recording->process_count; i++) {
		begin = recording->processes[i].meta.first_mono_ns +
			trace->shift_ns[i];
		if (recording->processes[i].has_meta &&
		    begin < trace->start_mono_ns)
			trace->start_mono_ns = begin;
	}
}

void trace_clocks_close(struct trace *trace)
{
	free(trace->shift_ns);
	free(trace->part_shift_ns);
	trace->shift_ns = trace->part_shift_ns = NULL;
}

double trace_clocks_ns(const struct trace *trace, uint32_t process,
		       uint64_t mono_ns)
{
	return (double)(int64_t)(mono_ns + trace->shift_ns[process] -
				 trace->start_mono_ns);
}

double trace_clocks_part_ns(const struct trace *trace, uint32_t part,
			    uint64_t mono_ns)
{
	return (double)(int64_t)(mono_ns + trace->part_shift_ns[part] -
				 trace->start_mono_ns);
}

void trace_clocks_tell(const struct trace *trace)
{
	if (trace->clock_count > 1)
		warn("%s: %u hosts, boots or time namespaces: their clocks are aligned by the "
		     "time of day at the start of each, as exactly as that is "
		     "set; drift is not corrected",
		     trace->recording->path, trace->clock_count);
}
