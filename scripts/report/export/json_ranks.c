/*
 * The export of the ranks of a parallel job as JSON, one object for each rank.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/json_ranks.h"
#include "model/functions.h"
#include "model/model.h"
#include "model/ranks.h"

static void put_row(FILE *out, const struct ranks *ranks,
		    const struct rank_row *row)
{
	double *each = ranks->each;
	uint32_t i;

	for (i = row->first; i != NONE; i = ranks->figures[i].next)
		each[ranks->figures[i].rank] = ranks->figures[i].value;

	fprintf(out,
		"\"mean\":%.17g,\"min\":%.17g,\"min_rank\":%u,"
		"\"max\":%.17g,\"max_rank\":%u,\"imbalance_percent\":%.17g,"
		"\"calls\":%" PRIu64 ",\"each\":[",
		row->mean, row->least, row->least_rank, row->most,
		row->most_rank, ranks_imbalance(row), row->calls);
	for (i = 0; i < ranks->count; i++)
		fprintf(out, "%s%.17g", i ? "," : "", each[i]);
	for (i = row->first; i != NONE; i = ranks->figures[i].next)
		each[ranks->figures[i].rank] = 0;
	fputc(']', out);
}

void ranks_json(FILE *out, struct model *model)
{
	struct ranks ranks;
	bool first = true;
	uint32_t i;

	ranks_collect(&ranks, model);
	ranks.each = allocate(ranks.count, sizeof(*ranks.each));
	fprintf(out, "{\"value\":\"%s\",\"ranks\":[",
		ranks.is_timed ? "self_ns" : "calls");
	for (i = 0; i < ranks.count; i++) {
		fputs(i ? "," : "", out);
		put_json(out, ranks.names[i]);
	}
	fputs("],\"all\":{", out);
	put_row(out, &ranks, &ranks.all);
	fputs("},\n\"functions\":[", out);
	for (i = 0; i < model->function_count; i++) {
		if (!ranks.functions[i].calls && ranks.functions[i].most <= 0)
			continue;
		fputs(first ? "\n{\"name\":" : ",\n{\"name\":", out);
		first = false;
		put_json(out, model->functions[i].name);
		fputs(",\"object\":", out);
		put_json(out, object_name(&model->functions[i]));
		fputc(',', out);
		put_row(out, &ranks, &ranks.functions[i]);
		fputc('}', out);
	}
	fputs("]}\n", out);
}
