/* Formats recorded arguments and results as text. */
#ifndef REPORT_TRACE_VALUES_H
#define REPORT_TRACE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shim/format.h>

struct trace;

/* Reads the types of N.values: @size bytes of @data. */
void trace_values_read(struct trace *trace, uint32_t process, const char *name,
		       const unsigned char *data, uint64_t size,
		       const struct shim_file *header);
void trace_values_close(struct value_table *table);
/* Formats a struct shim_trace_values of @size bytes as text of at most @room
 * bytes; *@function is set to the number of its function, or 0.  @kind is
 * SHIM_VALUES_KIND_ARGUMENTS or _RESULT.  Returns false if a part of it is
 * unknown. */
bool trace_values_text(const struct value_table *table,
		       const unsigned char *record, uint32_t size,
		       uint32_t kind, char *text, size_t room,
		       uint32_t *function);

#endif
