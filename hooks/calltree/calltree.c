/*
 * The calltree profiler: `-p calltree`.  It records the calls of the call-path engine,
 * and groups of calls (groups.c).
 */
#include "calltree/groups.h"
#include "options/start.h"
#include "path/path.h"

#include <shim/banned.h>

static enum clock asked_clock = COARSE;

static void take_option(enum option_name name, const struct option_value *value)
{
	if (name == OPTION_calltree_BY)
		groups_add(value);
	else if (name == OPTION_calltree_BY_LIMIT)
		groups_limit((uint32_t)value->number);
	else
		asked_clock = name == OPTION_calltree_EXACT ? EXACT : COUNTS;
}

static bool start(void)
{
	tree_is_asked = true;
	return tree_need_calls(asked_clock, "calltree");
}

BUILTIN(calltree, take_option, start, .begin = tree_begin);
