/* Writes estimates and bounds in JSON and CSV, and as a warning for formats
 * without fields for them. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "export/estimates.h"
#include "model/budget.h"
#include "model/model.h"

#define NAMES_MAX 8

static void put_uncounted(struct json *json)
{
	json_key_null(json, "calls");
	json_key_null(json, "calls_exact");
	json_key_null(json, "calls_estimated");
	json_key_null(json, "calls_error");
	json_key_flag(json, "calls_complete", false);
}

void json_calls(struct json *json, const struct count *count, bool is_counted)
{
	bool is_known = count->is_estimate && !count->is_least;

	if (!is_counted) {
		put_uncounted(json);
		return;
	}
	json_key_count(json, "calls", count->calls);
	json_key_count(json, "calls_exact", count->exact);
	if (is_known) {
		json_key_count(json, "calls_estimated", count->calls);
		json_key_count(json, "calls_error", whole(count->error));
	} else {
		json_key_null(json, "calls_estimated");
		json_key_null(json, "calls_error");
	}
	json_key_flag(json, "calls_complete", !count->is_least);
}

static void put_bound(struct json *json, const char *key, double bound)
{
	if (bound > 0)
		json_key_count(json, key, whole(bound));
	else
		json_key_null(json, key);
}

void json_bounds(struct json *json, double self, double total)
{
	put_bound(json, "self_below_ns", self);
	put_bound(json, "total_below_ns", total);
}

void json_budget(struct json *json, const struct model *model)
{
	const struct budget *budget = model->budget;

	if (!budget)
		return;
	json_key_object(json, "budget");
	json_key_number(json, "percent", budget->percent, 6);
	json_key_count(json, "functions_off", budget->functions);
	json_key_count(json, "functions_counted", budget->counted_functions);
	json_key_count(json, "functions_not_switched", budget->failed);
	json_key_count(json, "sample_period_ns", whole(budget->period_ns));
	json_key_count(json, "time_ns", whole(budget->time_ns));
	json_key_count(json, "hooks_ns", whole(budget->hooks_ns));
	json_key_count(json, "own_ns", whole(budget->own_ns));
	json_key_count(json, "images_ns", whole(budget->images_ns));
	json_key_count(json, "call_sites_ns", whole(budget->sites_ns));
	json_close_object(json);
}

void csv_calls(FILE *out, const struct count *count)
{
	if (!count) {
		fputs(",calls_exact,calls_error", out);
		return;
	}
	fprintf(out, ",%" PRIu64 ",", count->exact);
	if (count->is_estimate && !count->is_least)
		fprintf(out, "%" PRIu64, whole(count->error));
	else if (count->is_least)
		fputs("inf", out);
}

void estimates_tell(const struct model *model)
{
	const char *names = "";
	uint32_t i, count = 0;

	for (i = 0; i < model->function_count; i++) {
		if (!model->functions[i].sums.missing.is_estimate)
			continue;
		if (count++ < NAMES_MAX)
			names = keep_format("%s%s%s", names,
					    count > 1 ? ", " : "",
					    model->functions[i].name);
	}
	if (count > NAMES_MAX)
		names = keep_format("%s and %u more", names, count - NAMES_MAX);
	if (count)
		warn("the calls of %u function%s are estimates: %s", count,
		     count == 1 ? "" : "s", names);
}
