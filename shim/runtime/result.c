/*
 * Names and texts of results.  The table includes results of the CLR that shim never
 * returns, because a module's init function may return any of them.
 */
#include <shim/clr.h>
#include <shim/shim.h>

#include <shim/banned.h>

static const struct {
	int value;
	const char *name, *text;
} results[] = {
#define SHIM_DEFINE_RESULT(name, value, text) { name, #name, text },
#include <shim/results.def>
	SHIM_CLR_RESULTS(SHIM_DEFINE_RESULT)
#undef SHIM_DEFINE_RESULT
};

#define COUNT (sizeof(results) / sizeof(*results))

const char *shim_result_name(int result)
{
	for (size_t i = 0; i < COUNT; i++)
		if (results[i].value == result)
			return results[i].name;
	return NULL;
}

const char *shim_result_text(int result)
{
	for (size_t i = 0; i < COUNT; i++)
		if (results[i].value == result)
			return results[i].text;
	return NULL;
}
