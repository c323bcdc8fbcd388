/*
 * Why functions have no names or lines, and why recording takes longer than the
 * program: each is said once, as its cause and with the cure.
 */
#include <math.h>
#include <string.h>

#include "advice.h"
#include "report.h"
#include "symbols.h"

#define PATHS_MAX 4
/* A call that takes less than this is shorter than its recording. */
#define TRIVIAL_NS 20
/* Fewer calls are recorded in milliseconds. */
#define MANY_CALLS 1000000

/* --- what objects lack ---------------------------------------------------- */

static bool has_unnamed(const struct model *model, const struct object *object)
{
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		if (model->functions[i].object == object &&
		    !model->functions[i].is_named)
			return true;
	return false;
}

/* Samples are also taken in libraries that nobody compiles for that. */
static bool is_of_interest(const struct model *model,
			   const struct object *object)
{
	const char *program =
		process_string(&model->recording->processes[0], "program");

	return !model->is_sampled ||
	       (program && !strcmp(object->path, program));
}

static bool lacks(const struct model *model, struct object *object,
		  enum lack lack)
{
	if (object->functions == 0 || !is_of_interest(model, object))
		return false;
	if (symbols_are_stripped(object))
		return lack == LACKS_SYMBOLS && has_unnamed(model, object);
	return lack == LACKS_LINES && !symbols_have_lines(object);
}

uint32_t advice_lacking(const struct model *model, enum lack lack,
			const char **paths, uint32_t room)
{
	uint32_t i, count = 0;

	for (i = 0; i < model->object_count; i++) {
		if (!lacks(model, &model->objects[i], lack))
			continue;
		if (count < room)
			paths[count] = model->objects[i].path;
		count++;
	}
	return count;
}

static void print_lacking(FILE *out, const struct model *model, enum lack lack,
			  const char *text)
{
	const char *paths[PATHS_MAX];
	uint32_t count = advice_lacking(model, lack, paths, PATHS_MAX), i;

	if (!count)
		return;
	fputs("  ", out);
	for (i = 0; i < count && i < PATHS_MAX; i++) {
		fputs(i ? ", " : "", out);
		put_text(out, base_name(paths[i]));
	}
	if (count > PATHS_MAX)
		fprintf(out, " and %u more", count - PATHS_MAX);
	fprintf(out, " %s %s\n", count > 1 ? "are" : "is", text);
}

/* --- what recording costs ------------------------------------------------- */

static bool is_mostly_cost(const struct model *model)
{
	return model->has_times && !model->raw && !model->is_sampled &&
	       model->calls >= MANY_CALLS &&
	       fmax(model->time, 0) < model->time_raw / 2;
}

/* Those of its calls that took less; where the mean is all there is, preemption
 * counts against it. */
static uint64_t trivial_calls(const struct model *model,
			      const struct function *function)
{
	const struct sums *sums = &function->sums;
	uint64_t calls = 0;
	int i;

	if (!function->histogram)
		return sums->total < (double)sums->calls * TRIVIAL_NS ?
			       sums->calls : 0;
	for (i = 0; i < SHIM_BUCKETS; i++)
		if (ldexp(model->bucket_ns, i) < TRIVIAL_NS)
			calls += function->histogram[i];
	return calls;
}

static bool has_trivial_calls(const struct model *model)
{
	uint64_t trivial = 0;
	uint32_t i;

	if (!model->has_times || model->is_sampled || model->calls < MANY_CALLS)
		return false;
	for (i = 0; i < model->function_count; i++)
		trivial += trivial_calls(model, &model->functions[i]);
	return trivial > model->calls / 2;
}

/* --- all of it ------------------------------------------------------------ */

void advice_print(FILE *out, const struct model *model)
{
	bool is_cost = is_mostly_cost(model);

	print_lacking(out, model, LACKS_SYMBOLS,
		      "stripped: functions without a name are shown by address "
		      "(keep the symbols: no -s, no strip)");
	print_lacking(out, model, LACKS_LINES,
		      "without debug information: source lines are unknown "
		      "(compile with -g)");
	if (!is_cost && !has_trivial_calls(model))
		return;
	fprintf(out, "  %s; compile C++ so that trivial functions are not "
		"recorded:\n"
		"    gcc    -finstrument-functions "
		"-finstrument-functions-exclude-file-list=/usr/include\n"
		"    clang  -finstrument-functions-after-inlining\n",
		is_cost ? "recording took longer than the program" :
			  "most calls take less than 20 ns, which is less than "
			  "recording them does");
}
