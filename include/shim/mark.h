/*
 * What a program can say about itself, for its timeline: that something happened,
 * that a range of time begins and ends, what a number is now.
 *
 *     #include <shim/mark.h>
 *
 *     shim_range_begin("load");
 *     ...
 *     shim_counter("files", 17);
 *     shim_range_end("load");
 *
 * The program is not linked to shim: where that is not there, or nobody traces, these
 * calls do nothing.  (-p trace keeps them; any profiler can ask for the event
 * `marked` of <shim/events.def>.)
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
 * shim_mark_emit - what the functions below call
 *
 * @text is what there is to say, a range's name or a counter's, and ends in a NUL; it
 * is copied, up to 240 bytes.  @bits are those of a counter's value, a double, and 0
 * for other kinds.
 *
 * Returns SHIM_OK, also if nobody wants to know; SHIM_E_INVALIDARG for another kind
 * or if @text is NULL.
 *
 * Contract: async.  Cost: one load if nobody wants to know; 50 ns in a trace.
 */
SHIM_API enum shim_result
shim_mark_emit(SHIM_IN enum shim_mark_kind kind, SHIM_IN const char *text,
	       SHIM_IN uint64_t bits) SHIM_ASYNC;
#ifndef SHIM_MARKS_ARE_HERE
#pragma weak shim_mark_emit

/* Something happens now. */
SHIM_QUIET static inline void shim_mark(const char *text)
{
	if (shim_mark_emit)
		shim_mark_emit(SHIM_MARK, text, 0);
}

/* Ranges of one thread need not nest: what ends is the latest of that name. */
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

/* A number that is @value from now on. */
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
