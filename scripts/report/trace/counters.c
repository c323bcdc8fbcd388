/*
 * Reads the system's counters of processes (profrun --counters) as counters of
 * their first threads.  The file has lines of text; its content is not trusted.
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

#include "base/memory.h"
#include "base/messages.h"
#include "read/files.h"
#include "read/recording.h"
#include "trace/clocks.h"
#include "trace/counters.h"
#include "trace/gaps.h"
#include "trace/trace.h"

#define COUNTERS_MAX 1000000u
#define NAMES_MAX    64

struct lines {
	struct trace *trace;
	uint32_t part;
	const char *file;
	uint64_t number, bad; /* lines; 0: none */
	uint32_t taken;
	const char *names[NAMES_MAX];
	unsigned name_count;
};

/* There are few different names, so each is kept once. */
static const char *find_name(struct lines *lines, const char *text)
{
	unsigned i;

	for (i = 0; i < lines->name_count; i++)
		if (!strcmp(lines->names[i], text))
			return lines->names[i];
	if (lines->name_count == NAMES_MAX)
		return NULL;
	lines->names[lines->name_count] = keep_text(text, SIZE_MAX);
	return lines->names[lines->name_count++];
}

static bool take_line(struct lines *lines, char *line)
{
	struct trace *trace = lines->trace;
	const char *name;
	uint64_t time_ns;
	uint32_t pid;
	double value;
	int at = 0;

	if (sscanf(line, "%" SCNu64 " %" SCNu32 " %lf %n", &time_ns, &pid,
		   &value, &at) != 3 ||
	    !line[at] || !isfinite(value))
		return false;
	name = find_name(lines, line + at);
	if (!name)
		return false;
	GROW(trace->gaps, trace->gap_count, trace->gap_room);
	trace->gaps[trace->gap_count++] = (struct trace_gap){
		.part = lines->part,
		.pid = pid,
		.tid = pid,
		.from_ns = trace_clocks_part_ns(trace, lines->part, time_ns),
		.to_ns = value,
		.counter = name,
	};
	lines->taken++;
	return true;
}

static void read_lines(struct lines *lines, FILE *in)
{
	char line[256] = "", *end;
	bool goes_on = false; /* the line is too long */

	while (lines->taken < COUNTERS_MAX && fgets(line, sizeof(line), in)) {
		bool is_rest = goes_on, is_good;

		lines->number += !is_rest;
		end = memchr(line, '\n', sizeof(line));
		goes_on = !end;
		if (end)
			*end = '\0';
		/* The last line may be incomplete if the writer was killed. */
		is_good = is_rest || (end ? take_line(lines, line) : feof(in));
		if (!is_good && !lines->bad)
			lines->bad = lines->number;
		memset(line, 0, sizeof(line));
	}
	if (lines->bad)
		warn("%s: line %" PRIu64 " is not \"MONO-NS PID VALUE NAME\"",
		     lines->file, lines->bad);
	if (lines->taken == COUNTERS_MAX)
		warn("%s: counters behind line %" PRIu64
		     " are not shown: there "
		     "are too many",
		     lines->file, lines->number);
}

void trace_counters_open(struct trace *trace)
{
	const struct recording *recording = trace->recording;
	uint32_t i;

	for (i = 0; i < recording->part_count; i++) {
		const char *part = recording->parts[i].name;
		struct lines lines = { .trace = trace, .part = i };
		FILE *in;
		int fd;

		lines.file = keep_format("%s/%s%scounters", recording->path,
					 part ? part : "", part ? "/" : "");
		if (access(lines.file, F_OK) != 0)
			continue;
		fd = open_in(AT_FDCWD, lines.file, lines.file);
		in = fd < 0 ? NULL : fdopen(fd, "r");
		if (!in)
			continue;
		read_lines(&lines, in);
		fclose(in);
	}
}
