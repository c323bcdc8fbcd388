/* What all formats of timelines need. */
#ifndef REPORT_EXPORT_LANES_H
#define REPORT_EXPORT_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "model/model.h"
#include "model/options.h"
#include "read/recording.h"
#include "trace/trace.h"

/* What calls nest in: a thread, or a coroutine that ran on it. */
struct lane {
	uint32_t process;	/* of recording->processes */
	uint32_t thread, track; /* as in struct trace_event */
	uint32_t pid, tid; /* unique; those of the system where that can be */
};

struct lanes {
	struct recording *recording;
	struct model *model;
	const struct options *options;
	struct trace trace;
	struct map by_key;
	struct lane *all;
	uint32_t lane_count, lane_room;
};

/* A result, until the end of its call comes: "" when there is none. */
struct kept_text {
	char *text;
	size_t room;
};

void keep_for_later(struct kept_text *kept, const char *text);
/* The lane of an event; *@is_new: it is the first there. */
uint32_t lanes_number(struct lanes *lanes, const struct trace_event *event,
		      bool *is_new);
uint32_t lanes_pid(const struct lanes *lanes, uint32_t process);
/* "lua", "lua (rank.2)" */
const char *lanes_process_name(const struct lanes *lanes, uint32_t process);
/* "worker", "worker, coroutine 2" */
const char *lanes_name(const struct lanes *lanes, const struct lane *lane);
/* Of an ENTER or LEAVE. */
const char *lanes_function_name(const struct lanes *lanes,
				const struct trace_event *event);

#endif
