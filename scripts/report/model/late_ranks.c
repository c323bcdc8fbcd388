/*
 * Adds up the waits of a job's processes for each other.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "model/functions.h"
#include "model/late_ranks.h"
#include "model/model.h"
#include "read/process.h"
#include "read/recording.h"
#include "trace/messages.h"
#include "trace/trace.h"

struct adding {
	struct late_ranks *ranks;
	struct map by_key;
	uint32_t room;
};

static struct late_rank *entry_of(struct adding *adding,
				  const struct message_wait *wait)
{
	struct late_ranks *ranks = adding->ranks;
	uint32_t late = ranks->trace.threads[wait->late].process;
	uint32_t function = ranks->recording.sites[wait->site].function;
	uint64_t key = ((uint64_t)late << 32 | function) * 4 + wait->kind;
	uint32_t number = map_add(&adding->by_key, key, ranks->count);

	if (number == ranks->count) {
		GROW(ranks->all, ranks->count, adding->room);
		ranks->all[ranks->count++] = (struct late_rank){
			.kind = wait->kind,
			.late = late,
			.function = function,
			.thread = wait->late,
		};
	}
	return &ranks->all[number];
}

static void add_wait(struct adding *adding, const struct message_wait *wait)
{
	struct late_ranks *ranks = adding->ranks;
	struct late_rank *entry = entry_of(adding, wait);
	double waited = wait->to_ns - wait->from_ns;

	entry->waited_ns += waited;
	entry->times++;
	ranks->processes[ranks->trace.threads[wait->thread].process]
		.waited_ns += waited;
	ranks->processes[entry->late].awaited_ns += waited;
}

static int compare(const void *left, const void *right)
{
	const struct late_rank *a = left, *b = right;

	if (a->waited_ns != b->waited_ns)
		return a->waited_ns > b->waited_ns ? -1 : 1;
	if (a->late != b->late)
		return a->late < b->late ? -1 : 1;
	return a->function < b->function ? -1 : a->function > b->function;
}

void late_ranks_find(struct late_ranks *ranks, const char *path)
{
	struct adding adding = { .ranks = ranks };
	uint32_t i;

	*ranks = (struct late_ranks){ .count = 0 };
	recording_open(&ranks->recording, path, 0);
	ranks->model.recording = &ranks->recording;
	if (!trace_open(&ranks->trace, &ranks->recording))
		return;
	model_find_functions(&ranks->model);
	ranks->messages = trace_find_messages(&ranks->trace);
	ranks->processes = allocate(ranks->recording.process_count,
				    sizeof(*ranks->processes));
	for (i = 0; ranks->messages && i < ranks->messages->wait_count; i++)
		add_wait(&adding, &ranks->messages->waits[i]);
	map_free(&adding.by_key);
	if (ranks->count)
		qsort(ranks->all, ranks->count, sizeof(*ranks->all), compare);
}

void late_ranks_free(struct late_ranks *ranks)
{
	trace_close(&ranks->trace);
	free(ranks->all);
	free(ranks->processes);
}

const char *late_reason(enum message_wait_kind kind)
{
	return kind == WAIT_LATE_SENDER	  ? "sends later" :
	       kind == WAIT_LATE_RECEIVER ? "receives later" :
					    "comes last";
}

const char *late_rank_name(const struct late_ranks *ranks, uint32_t process)
{
	const struct process *about = &ranks->recording.processes[process];
	const char *rank = process_string(about, "rank");

	return rank ? keep_format("rank %s", rank) : about->name;
}
