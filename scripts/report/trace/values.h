/* Recorded arguments and results, as text. */
#ifndef REPORT_TRACE_VALUES_H
#define REPORT_TRACE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shim/format.h>

struct trace;

/* What N.values, which is @size bytes of @data, describes. */
void trace_values_read(struct trace *trace, uint32_t process, const char *name,
		       const unsigned char *data, uint64_t size,
		       const struct shim_file *header);
void trace_values_close(struct value_table *table);
/* A struct shim_trace_values of @size bytes as text, for which there are @room bytes;
 * *@function gets the number of the function it is of, or 0.  @kind:
 * SHIM_VALUES_KIND_ARGUMENTS or _RESULT.  false: some of it is unknown. */
bool trace_values_text(const struct value_table *table,
		       const unsigned char *record, uint32_t size,
		       uint32_t kind, char *text, size_t room,
		       uint32_t *function);

#endif
