/*
 * Reads the records of one file, from front to back.  Several readers may be in
 * use at the same time.
 */
#ifndef REPORT_TRACE_READER_H
#define REPORT_TRACE_READER_H

#include <stdbool.h>
#include <stdint.h>

struct trace;
struct trace_event;
struct trace_range;

/* The time of the last record in a file, in clock units; 0: no record. */
uint64_t trace_last_clock(struct trace *trace, uint32_t file);
/* The time at which its first block began. */
double trace_begins_ns(struct trace *trace, uint32_t file);

/* Reads one file, from front to back.  Several readers may be in use at the
 * same time. */
struct trace_reader;
struct trace_reader *trace_begin(struct trace *trace, uint32_t file,
				 const struct trace_range *range);
bool trace_next(struct trace_reader *reader, struct trace_event *event);
void trace_end(struct trace_reader *reader);

#endif
