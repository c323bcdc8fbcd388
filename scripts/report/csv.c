/* The table of functions as RFC 4180 has it; unknown cells are empty. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static void put_ns(FILE *out, double ns, bool is_known)
{
	if (is_known)
		fprintf(out, ",%" PRIu64, whole(ns));
	else
		fputc(',', out);
}

static void put_row(FILE *out, struct function *function,
		    const struct sums *sums, const struct memory *memory)
{
	bool known = !is_untimed(sums);

	function_line(function);
	put_csv(out, function->name);
	fputc(',', out);
	put_csv(out, function->mangled);
	fputc(',', out);
	put_csv(out, function->object ? function->object->path : NULL);
	fputc(',', out);
	put_csv(out, function->file);
	fputc(',', out);
	if (function->file)
		fprintf(out, "%d", function->line);
	fprintf(out, ",%" PRIu64 ",%" PRIu64, sums->calls, sums->open);
	put_ns(out, sums->self, known);
	put_ns(out, sqrt(sums->self_variance), known);
	put_ns(out, sums->self_raw, known);
	put_ns(out, sums->total, known);
	put_ns(out, sqrt(sums->total_variance), known);
	put_ns(out, mean_ns(sums), known);
	put_ns(out, sums->min, sums->has_range);
	put_ns(out, sums->max, sums->has_range);
	if (memory)
		fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			",%" PRIu64, memory->allocated, memory->allocations,
			memory->temporary, memory->peak, memory->live);
	fputs("\r\n", out);
}

static void put_rows(FILE *out, struct model *model, const struct sums *sums,
		     const struct options *options, const struct thread *thread)
{
	uint32_t *order, count, i;

	order = order_functions(model, sums, options, &count);
	if (options->limit > 0 && options->limit < count)
		count = (uint32_t)options->limit;
	for (i = 0; i < count; i++) {
		if (thread) {
			fprintf(out, "%u,%u,",
				model->recording->processes[thread->process]
					.pid, thread->tid);
			put_csv(out, thread->name);
			fputc(',', out);
		}
		put_row(out, &model->functions[order[i]], &sums[order[i]],
			model->has_memory && !thread ?
			&model->function_memory[order[i]] : NULL);
	}
	free(order);
}

void csv_print(FILE *out, struct model *model, const struct options *options)
{
	struct sums *sums;
	uint32_t i;

	if (options->locks) {
		locks_csv(out, model, options);
		return;
	}
	if (options->exceptions) {
		exceptions_csv(out, model, options);
		return;
	}
	sums = allocate(model->function_count, sizeof(*sums));
	if (options->threads)
		fputs("pid,tid,thread,", out);
	fputs("name,mangled,object,file,line,calls,open,self_ns,self_error_ns,"
	      "self_raw_ns,total_ns,total_error_ns,mean_ns,min_ns,max_ns",
	      out);
	if (model->has_memory && !options->threads)
		fputs(",allocated_bytes,allocations,temporary,peak_bytes,"
		      "left_bytes", out);
	fputs("\r\n", out);
	if (!options->threads) {
		for (i = 0; i < model->function_count; i++)
			sums[i] = model->functions[i].sums;
		put_rows(out, model, sums, options, NULL);
	}
	for (i = 0; options->threads && i < model->thread_count; i++) {
		if (!model->threads[i].calls)
			continue;
		memset(sums, 0, model->function_count * sizeof(*sums));
		model_sum(model, model->threads[i].path, sums);
		put_rows(out, model, sums, options, &model->threads[i]);
	}
	free(sums);
}
