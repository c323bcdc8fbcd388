/*
 * Tells profilers how the compiler has marked a function.
 */
#include "dispatch/call_sites.h"
#include "runtime/contract.h"
#include "runtime/state.h"
#include "sources/libcalls.h"
#include "sources/marks.h"

#include <shim/info.h>

#include <shim/banned.h>

struct query {
	shim_function function;
	enum shim_source source;
};

static int find_source(void *argument)
{
	struct query *query = argument;
	struct source_image *image = sources_image(query->function);
	const struct source_mark *mark = NULL;

	query->source = SHIM_SOURCE_NONE;
	if (call_sites_has(query->function)) {
		query->source = SHIM_SOURCE_HOOKS;
		return 0;
	}
	if (image && marks_find(image) == 0)
		mark = marks_find_function(image, query->function);
	if (mark)
		query->source = (enum shim_source)mark->source;
	else if (libcalls_have(query->function))
		query->source = SHIM_SOURCE_LIBCALL;
	return 0;
}

enum shim_result shim_function_source(shim_function function,
				      enum shim_source *source)
{
	struct query query = { .function = function };

	ENTRY_ASYNC();
	if (function == 0 || !source)
		return SHIM_E_INVALIDARG;
	if (state_call_locked(find_source, &query) < 0)
		return SHIM_E_FAIL;
	*source = query.source;
	return SHIM_OK;
}
