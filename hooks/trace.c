/*
 * The trace profiler: `-p trace`.  Every enter and leave with its time.
 *
 * The calls are those of the call tree (calltree.h), which finds out how each of them
 * ends; its hooks write the records, one way or the other.  Without calltree beside
 * it the tree is in private memory and counts nothing.
 */
#include "calltree.h"

#include <shim/mark.h>
#include <shim/signals.h>

#include <shim/banned.h>

static const enum shim_trace_kind kinds[] = {
	[SHIM_MARK] = SHIM_TRACE_MARK,
	[SHIM_RANGE_BEGIN] = SHIM_TRACE_RANGE_BEGIN,
	[SHIM_RANGE_END] = SHIM_TRACE_RANGE_END,
};

static void on_marked(struct shim_profiler *profiler, uint32_t kind,
		      const char *text, uint64_t bits)
{
	size_t size = 0;

	(void)profiler;
	while (size < SHIM_TRACE_TEXT && text[size])
		size++;
	if (kind == SHIM_COUNTER)
		trace_counter(text, bits);
	else
		trace_text(kinds[kind], text, size);
}

static void on_trace_switched(struct shim_profiler *profiler, int is_on)
{
	(void)profiler;
	trace_switch(!is_on);
}

static void on_signalled(struct shim_profiler *profiler, int signal)
{
	(void)profiler;
	if (signal == trace_options.signal)
		trace_toggle();
}

int trace_start(const char *arguments);

/* @arguments: separated by commas.  0, or -1 if one is none. */
int trace_start(const char *arguments)
{
	struct shim_profiler_handle *handle;

	while (*arguments) {
		size_t size = 0;

		while (arguments[size] && arguments[size] != ',')
			size++;
		if (!trace_read_option(arguments, size))
			return -1;
		arguments += size;
		arguments += *arguments == ',';
	}
	trace_prepare();
	tree_is_traced = true;
	handle = shim_profiler_create(NULL);
	shim_profiler_on_marked(handle, on_marked);
	shim_profiler_on_trace_switched(handle, on_trace_switched);
	if (trace_options.signal) {
		shim_profiler_on_signalled(handle, on_signalled);
		if (shim_profiler_ask_signal(handle, trace_options.signal) !=
		    SHIM_OK)
			return -1;
	}
	return tree_start() < 0 || !trace_values_start() ? -1 : 0;
}
