/*
 * What the program says for its timeline goes to whoever keeps one.
 */
#include "contract.h"
#include "events.h"

#define SHIM_MARKS_ARE_HERE
#include <shim/mark.h>
#include <shim/trace.h>

#include <shim/banned.h>

enum shim_result shim_mark_tell(enum shim_mark_kind kind, const char *text,
				uint64_t bits)
{
	ENTRY_ASYNC();
	if (!text || (unsigned)kind > SHIM_COUNTER)
		return SHIM_E_INVALIDARG;
	RAISE(marked, kind, text, bits);
	return SHIM_OK;
}

enum shim_result shim_trace_switch(int is_on)
{
	ENTRY_ASYNC();
	RAISE(trace_switched, is_on != 0);
	return SHIM_OK;
}
