/*
 * Marks: a program notes in its timeline that something happened, that a range
 * of time begins or ends, or the value of a counter.
 *
 * The program is not linked to shim: without shim, and without a profiler that
 * records marks, these calls do nothing.  -p trace records them; any profiler
 * can set a callback for the event `marked` of <shim/events.def>.
 *
 * Example:
 *
 *     #include <shim/mark.h>
 *
 *     void load(int count);
 *     void load(int count)
 *     {
 *             shim_range_begin("load");
 *             shim_counter("files", count);
 *             shim_range_end("load");
 *     }
 */
#ifndef SHIM_MARK_H
#define SHIM_MARK_H

#include <shim/shim.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum shim_mark_kind {
	SHIM_MARK = 0,
	SHIM_RANGE_BEGIN = 1,
	SHIM_RANGE_END = 2,
	SHIM_COUNTER = 3,
};

/*
 * shim_mark_emit - record a mark
 *
 * @text is the text of a mark, or the name of a range or counter.  It ends in a
 * NUL and is copied, up to 240 bytes.  @bits are the bits of a counter's value,
 * a double; 0 for other kinds.
 *
 * Returns SHIM_OK, also if no profiler records marks; SHIM_E_INVALIDARG if
 * @kind is unknown or @text is NULL.
 *
 * Contract: async.  Cost: one load if no profiler records marks; 50 ns in a
 * trace.  CLR: EventPipeWriteEvent.  Mono: none.
 */
SHIM_API enum shim_result shim_mark_emit(SHIM_IN enum shim_mark_kind kind,
					 SHIM_IN const char *text,
					 SHIM_IN uint64_t bits) SHIM_ASYNC;
#ifndef SHIM_MARKS_ARE_HERE
#pragma weak shim_mark_emit

/* A moment. */
SHIM_QUIET static inline void shim_mark(const char *text)
{
	if (shim_mark_emit)
		shim_mark_emit(SHIM_MARK, text, 0);
}

/* Ranges of one thread need not nest: an end closes the latest range of that name. */
SHIM_QUIET static inline void shim_range_begin(const char *name)
{
	if (shim_mark_emit)
		shim_mark_emit(SHIM_RANGE_BEGIN, name, 0);
}

SHIM_QUIET static inline void shim_range_end(const char *name)
{
	if (shim_mark_emit)
		shim_mark_emit(SHIM_RANGE_END, name, 0);
}

/* The value of a counter from now on. */
SHIM_QUIET static inline void shim_counter(const char *name, double value)
{
	union {
		double value;
		uint64_t bits;
	} both;

	both.value = value;
	if (shim_mark_emit)
		shim_mark_emit(SHIM_COUNTER, name, both.bits);
}

#endif

#ifdef __cplusplus
}
#endif
#endif
