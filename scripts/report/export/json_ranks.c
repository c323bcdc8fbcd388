/*
 * The export of the ranks of a parallel job as JSON, one object for each rank.
 */
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>

#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "export/json_ranks.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/rank_groups.h"
#include "model/ranks.h"

/* As keys of the object that is open. */
static void put_row(struct json *json, const struct ranks *ranks,
		    const struct rank_row *row)
{
	double *each = ranks->each;
	struct rank_center center;
	uint32_t i;

	for (i = row->first; i != NONE; i = ranks->figures[i].next)
		each[ranks->figures[i].rank] = ranks->figures[i].value;

	json_key_number(json, "mean", row->mean, 17);
	json_key_number(json, "min", row->least, 17);
	json_key_count(json, "min_rank", row->least_rank);
	json_key_number(json, "max", row->most, 17);
	json_key_count(json, "max_rank", row->most_rank);
	rank_center_find(&center, ranks, row);
	json_key_number(json, "median", center.median, 17);
	json_key_number(json, "mad", center.mad, 17);
	json_key_array(json, "outliers");
	for (i = 0; i < center.count; i++)
		json_count(json, center.outliers[i]);
	json_close_array(json);
	free(center.outliers);
	json_key_number(json, "imbalance_percent", ranks_imbalance(row), 17);
	json_key_count(json, "calls", row->calls);
	json_key_flag(json, "calls_estimated", row->has_estimate);
	json_key_flag(json, "calls_complete", !row->has_unknown);
	json_key_array(json, "each");
	for (i = 0; i < ranks->count; i++)
		json_number(json, each[i], 17);
	json_close_array(json);
	for (i = row->first; i != NONE; i = ranks->figures[i].next)
		each[ranks->figures[i].rank] = 0;
}

static void put_function(struct json *json, const struct ranks *ranks,
			 const struct model *model, uint32_t number)
{
	const struct function *function = &model->functions[number];

	json_line(json, 0);
	json_object(json);
	json_key_text(json, "name", function->name);
	json_key_text(json, "object", object_name(function));
	put_row(json, ranks, &ranks->functions[number]);
	json_close_object(json);
}

void ranks_json(FILE *out, struct model *model)
{
	struct json json = json_begin(out);
	struct rank_groups groups;
	struct ranks ranks;
	uint32_t i;

	ranks_collect(&ranks, model);
	ranks.each = allocate(ranks.count, sizeof(*ranks.each));
	json_object(&json);
	json_key_text(&json, "value", ranks.is_timed ? "self_ns" : "calls");
	json_key_array(&json, "ranks");
	for (i = 0; i < ranks.count; i++)
		json_text(&json, ranks.names[i]);
	json_close_array(&json);
	rank_groups_find(&groups, &ranks);
	if (groups.count) {
		json_key_array(&json, "groups");
		for (i = 0; i < ranks.count; i++)
			json_count(&json, groups.of_rank[i]);
		json_close_array(&json);
	} else {
		json_key_null(&json, "groups");
	}
	free(groups.of_rank);
	json_key_object(&json, "all");
	put_row(&json, &ranks, &ranks.all);
	json_close_object(&json);
	json_line(&json, 0);
	json_key_array(&json, "functions");
	for (i = 0; i < model->function_count; i++)
		if (ranks.functions[i].calls || ranks.functions[i].most > 0)
			put_function(&json, &ranks, model, i);
	json_close_array(&json);
	json_close_object(&json);
	json_end(&json);
}
