/* Exports the table of functions as CSV (RFC 4180); unknown cells are empty. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/csv.h"
#include "export/csv_exceptions.h"
#include "export/csv_lines.h"
#include "export/csv_locks.h"
#include "export/estimates.h"
#include "export/format.h"
#include "model/bounds.h"
#include "model/functions.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/row_order.h"
#include "model/totals.h"

static void put_ns(FILE *out, double ns, bool is_known)
{
	if (is_known)
		fprintf(out, ",%" PRIu64, whole(ns));
	else
		fputc(',', out);
}

static void put_count(FILE *out, uint64_t count, bool is_known)
{
	if (is_known)
		fprintf(out, ",%" PRIu64, count);
	else
		fputc(',', out);
}

void csv_function(FILE *out, const struct function *function)
{
	put_csv(out, function->name);
	fputc(',', out);
	put_csv(out, function->mangled);
	fputc(',', out);
	put_csv(out, function->object ? function->object->path : NULL);
	fputc(',', out);
}

static void put_row(FILE *out, struct function *function,
		    const struct sums *sums, const struct memory *memory,
		    const struct model *model)
{
	bool known = !is_untimed(sums);
	struct count calls = count_of_sums(sums);

	function_line(function);
	csv_function(out, function);
	put_csv(out, function->file);
	fputc(',', out);
	if (function->file)
		fprintf(out, "%d", function->line);
	put_count(out, sums->calls, sums_are_counted(sums));
	put_count(out, sums->open, true);
	put_ns(out, sums->self, known);
	put_ns(out, sqrt(sums->self_variance), known);
	put_ns(out, sums->self_raw, known);
	put_ns(out, sums->total, known);
	put_ns(out, sqrt(sums->total_variance), known);
	put_ns(out, mean_ns(sums), known && mean_is_known(sums));
	put_ns(out, sums->min,
	       sums->has_range && !duration_bound(sums->min, sums->min_most));
	put_ns(out, sums->max,
	       sums->has_range && !duration_bound(sums->max, sums->max_most));
	if (memory)
		fprintf(out,
			",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			",%" PRIu64,
			memory->allocated, memory->allocations,
			memory->temporary, memory->peak, memory->live);
	if (model->budget)
		csv_calls(out, &calls);
	if (model->has_waited)
		put_ns(out, sums->waited, sums->has_waited);
	if (model->older)
		put_count(out, sums->older, true);
	if (model->guessed)
		put_count(out, sums->guessed, true);
	fputs("\r\n", out);
}

/* @order: functions that were called, which is freed. */
static void put_rows(FILE *out, struct model *model, const struct sums *sums,
		     const struct options *options, const struct thread *thread,
		     uint32_t *order, uint32_t count)
{
	uint32_t i;

	if (options->limit > 0 && options->limit < count)
		count = (uint32_t)options->limit;
	for (i = 0; i < count; i++) {
		if (thread) {
			fprintf(out, "%u,%u,",
				model->recording->processes[thread->process]
					.pid,
				thread->tid);
			put_csv(out, thread->name);
			fputc(',', out);
		}
		put_row(out, &model->functions[order[i]], &sums[order[i]],
			model->has_memory && !thread ?
				&model->function_memory[order[i]] :
				NULL,
			model);
	}
	free(order);
}

static void put_all(FILE *out, struct model *model,
		    const struct options *options)
{
	struct sums *sums = sums_of_functions(model);
	uint32_t count, *order;

	order = row_order_functions(model, sums, options, &count);
	put_rows(out, model, sums, options, NULL, order, count);
	free(sums);
}

static void put_threads(FILE *out, struct model *model,
			const struct options *options)
{
	struct part_sums part;
	uint32_t i, count, *order;

	part_sums_begin(&part, model);
	for (i = 0; i < model->thread_count; i++) {
		if (!model->threads[i].calls && !model->threads[i].older)
			continue;
		part_sums_of(&part, model, model->threads[i].path);
		order = row_order_part(model, &part, options, &count);
		put_rows(out, model, part.sums, options, &model->threads[i],
			 order, count);
	}
	part_sums_end(&part);
}

void csv_print(FILE *out, struct model *model, const struct options *options)
{
	if (options->lines) {
		lines_csv(out, model);
		return;
	}
	if (options->locks) {
		locks_csv(out, model, options);
		return;
	}
	if (options->exceptions) {
		exceptions_csv(out, model, options);
		return;
	}
	if (options->threads)
		fputs("pid,tid,thread,", out);
	fputs("name,mangled,object,file,line,calls,open,self_ns,self_error_ns,"
	      "self_raw_ns,total_ns,total_error_ns,mean_ns,min_ns,max_ns",
	      out);
	if (model->has_memory && !options->threads)
		fputs(",allocated_bytes,allocations,temporary,peak_bytes,"
		      "left_bytes",
		      out);
	if (model->budget)
		csv_calls(out, NULL);
	if (model->has_waited)
		fputs(",waited_ns", out);
	if (model->older)
		fputs(",open_before", out);
	if (model->guessed)
		fputs(",guessed", out);
	fputs("\r\n", out);
	if (options->threads)
		put_threads(out, model, options);
	else
		put_all(out, model, options);
}

EXPORT_FORMAT(csv) = {
	.name = "csv",
	.extension = "csv",
	.description = "the table of functions",
	.values = VALUES_OF_CALLS,
	.needs_no_times = true,
	.may_have_lines = true,
	.print = csv_print,
};
