/*
 * The calltree profiler: `-p calltree`.  It records the calls of the call-path engine,
 * all of them or within a budget, and groups of calls (groups.c).
 */
#include "budget/budget.h"
#include "budget/calibrate.h"
#include "calltree/groups.h"
#include "options/start.h"
#include "path/needs.h"

#include <shim/record.h>

#include <shim/banned.h>

static enum clock chosen_clock = COARSE;
static uint64_t percent;
static bool is_clock_given, is_calibrated, has_groups, is_cpu;

static void take_option(enum option_name name, const struct option_value *value)
{
	if (name == OPTION_calltree_BY) {
		groups_add(value);
		has_groups = true;
	} else if (name == OPTION_calltree_BY_LIMIT) {
		groups_limit((uint32_t)value->number);
	} else if (name == OPTION_calltree_BUDGET) {
		percent = value->number;
	} else if (name == OPTION_calltree_CLOCK) {
		is_cpu = value->number == 1; /* wall|cpu */
	} else {
		chosen_clock = name == OPTION_calltree_COUNTS ? COUNTS : EXACT;
		is_calibrated |= name == OPTION_calltree_CALIBRATE;
		is_clock_given = true;
	}
}

static void take_budget(enum option_name name, const struct option_value *value)
{
	if (name == OPTION_calltree_BUDGET)
		percent = value->number;
}

/* The option wins over SHIM_BUDGET, which is checked like the option. */
static void read_setting(void)
{
	static const char key[] = "budget=";
	const char *setting = shim_budget_setting();
	char item[32];
	struct option_error error;
	size_t n = 0;

	if (percent != 0 || *setting == '\0')
		return;
	for (; key[n]; n++)
		item[n] = key[n];
	for (; *setting && n < sizeof(item) - 1; n++)
		item[n] = *setting++;
	item[n] = '\0';
	if (!options_read("calltree", item, take_budget, &error))
		shim_record_log("SHIM_BUDGET is not a number from 1 to 99, of "
				"percent: the budget is ignored");
}

static bool start_calltree(void)
{
	const char *why = NULL;

	read_setting();
	if (percent != 0 && is_clock_given && chosen_clock == EXACT)
		why = "calltree: no budget with exact: each call is timed";
	else if (percent != 0 && has_groups)
		why = "calltree: no budget with by=: the argument of each call is read";
	if (why) {
		shim_record_log(why);
		percent = 0;
		why = NULL;
	}
	if (percent != 0)
		why = tree_refuses_budget();
	if (why) {
		shim_record_log(why);
		percent = 0;
		return false;
	}
	tree_is_asked = true;
	if (is_cpu && is_clock_given)
		why = chosen_clock == EXACT ?
			      "calltree: no clock=cpu with exact: the processor "
			      "time of each call would cost a system call" :
			      "calltree: no clock=cpu with counts: calls are "
			      "not timed";
	else if (is_cpu && percent != 0)
		why = "calltree: no clock=cpu with a budget: its samples are of "
		      "processor time";
	if (why)
		shim_record_log(why);
	else if (is_cpu)
		tree_need_cpu();
	if (percent == 0)
		return tree_need_calls(chosen_clock, "calltree");
	if (!tree_need_calls(COUNTS, "calltree"))
		return false;
	if (!budget_start((uint32_t)percent))
		tree_need_clock(chosen_clock, "calltree");
	return true;
}

static void begin_calltree(void)
{
	tree_begin();
	budget_begin();
	if (is_calibrated)
		calibrate_begin();
}

static bool record_calls(bool is_on)
{
	if (is_on)
		tree_return();
	else
		tree_leave();
	if (!is_on && tree_users() > 0)
		shim_record_log("calltree: the calls go on, because another "
				"profiler needs their paths");
	return true;
}

BUILTIN(calltree, take_option, start_calltree, .begin = begin_calltree,
	.record = record_calls);
