/* The lanes of a timeline, for all timeline formats. */
#ifndef REPORT_EXPORT_LANES_H
#define REPORT_EXPORT_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "model/locks.h"
#include "model/model.h"
#include "model/options.h"
#include "read/recording.h"
#include "trace/trace.h"

/* A lane: a sequence of nested calls, of a thread or of a coroutine on it. */
struct lane {
	uint32_t process;	/* number in recording->processes */
	uint32_t thread, track; /* as in struct trace_event */
	/* unique; the system's ids where they are unique already */
	uint32_t pid, tid;
};

struct lanes {
	struct recording *recording;
	struct model *model;
	const struct options *options;
	struct trace trace;
	struct trace_range range; /* what to export */
	struct map by_key;
	struct lane *all;
	uint32_t lane_count, lane_room;
	uint32_t last_lane; /* of the last event: most have the same one */
};

/* A result that is kept until the call ends; "": no result. */
struct kept_text {
	char *text;
	size_t room;
};

void keep_for_later(struct kept_text *kept, const char *text);
/* The number of an event's lane; *@is_new tells whether this is its first
 * event. */
uint32_t lanes_number(struct lanes *lanes, const struct trace_event *event,
		      bool *is_new);
/* The lane of a thread's own stack at a time that is exported; NULL: none. */
const struct lane *lanes_find(const struct lanes *lanes, uint32_t thread,
			      double time_ns);
uint32_t lanes_pid(const struct lanes *lanes, uint32_t process);
/* Example: "lua", "lua (rank.2)". */
const char *lanes_process_name(const struct lanes *lanes, uint32_t process);
/* Example: "worker", "worker, coroutine 2". */
const char *lanes_name(const struct lanes *lanes, const struct lane *lane);
/* The function of an ENTER or LEAVE. */
const char *lanes_function_name(const struct lanes *lanes,
				const struct trace_event *event);
/* What the thread of a WAIT waited for: locks_wait_text(). */
const char *lanes_wait_text(const struct lanes *lanes,
			    const struct trace_event *event, char *text,
			    size_t size);

#endif
