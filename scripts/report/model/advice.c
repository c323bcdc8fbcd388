/*
 * Finds the reasons why functions have no names or lines, and why recording
 * takes longer than the program.  The report prints each reason once, with the
 * remedy.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <shim/format.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/advice.h"
#include "model/budget.h"
#include "model/model.h"
#include "names/symbols.h"
#include "read/process.h"
/* A shorter call takes less time than its recording. */
#define TRIVIAL_NS 20
/* Fewer calls than this are recorded in milliseconds. */
#define MANY_CALLS 1000000
/* A dozen ticks, or fewer. */
#define SHORT_NS 50e6

/* --- missing parts of objects */

static bool has_unnamed(const struct model *model, const struct object *object)
{
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		if (model->functions[i].object == object &&
		    !model->functions[i].is_named)
			return true;
	return false;
}

/* Samples also hit libraries that cannot be compiled for it: those are left
 * out. */
static bool is_of_interest(const struct model *model,
			   const struct object *object)
{
	const char *program = process_string(&model->recording->processes[0],
					     "program");

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
	if (lack == LACKS_SYMBOLS || symbols_have_lines(object))
		return false;
	return lack == LACKS_LINES ||
	       (lack == LACKS_ZSTD) == symbols_have_zstd(object);
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

const char *advice_no_names(const struct model *model)
{
	const char *path;

	if (!advice_lacking(model, LACKS_SYMBOLS, &path, 1))
		return "";
	return keep_format("; %s is stripped, its functions have no names",
			   base_name(path));
}

bool advice_wants_values(const struct model *model)
{
	static const char *const keys[] = { "args=", "results=", "by=" };
	const char *profile = process_string(&model->recording->processes[0],
					     "profile");
	size_t i;

	for (i = 0; profile && i < sizeof(keys) / sizeof(*keys); i++)
		if (strstr(profile, keys[i]))
			return true;
	return false;
}

/* --- cost of recording */

bool advice_is_mostly_cost(const struct model *model)
{
	return model->has_times && !model->raw && !model->is_sampled &&
	       !model->budget && model->calls >= MANY_CALLS &&
	       fmax(model->time, 0) < model->time_raw / 2;
}

bool advice_is_costly(const struct model *model)
{
	return model->has_times && !model->raw && !model->is_sampled &&
	       !model->budget && model->calls >= MANY_CALLS &&
	       model->time_raw - fmax(model->time, 0) > model->time_raw / 3;
}

static bool is_calibrated(const struct model *model)
{
	const struct recording *recording = model->recording;
	uint32_t i;

	for (i = 0; i < recording->process_count; i++)
		if (budget_is_calibrated(&recording->processes[i]))
			return true;
	return false;
}

bool advice_is_not_calibrated(const struct model *model)
{
	return !model->has_errors && model->recording->processes[0].has_meta &&
	       !is_calibrated(model);
}

/*
 * Hooks in a program cost as little as this part of what they cost in the loop that
 * measures them at the start: 0.77 in qsort, 1.2 in SQLite, ninja and Duktape.
 */
#define COST_LEAST 0.75
/* What the call sites of a call take at most that are off, in ns: 0.5 to 1 in Lua,
 * SQLite, zstd, ninja, bzip2, zlib and Duktape. */
#define SITES_NS 1
/* A budget of 10 % leaves nine tenths to the program. */
#define TENTH_ADDED (1 / 0.9)

double advice_budget_time(const struct model *model)
{
	double cost = model->time_raw - fmax(model->time, 0);

	/* Otherwise samples show the cost of hooks. */
	if (!is_calibrated(model))
		cost *= COST_LEAST;
	return fmin((model->time_raw - cost + (double)model->calls * SITES_NS) *
			    TENTH_ADDED,
		    model->time_raw);
}

bool advice_is_short(const struct model *model)
{
	double time = model->budget ? model->budget->time_ns : model->duration;

	return model->has_times && model->has_errors && !model->is_sampled &&
	       !model->has_extras && time > 0 && time < SHORT_NS;
}

double advice_waiting(const struct model *model)
{
	const struct recording *recording = model->recording;
	double waited = model->time_raw;
	uint32_t i;

	if (!model->has_times || model->is_sampled || model->budget)
		return 0;
	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i];

		if (!process_has_cpu(process) || process->meta.is_cpu ||
		    budget_is_calibrated(process))
			return 0;
		waited -= process_cpu_ns(process);
	}
	return waited > model->time_raw / 3 && waited > SHORT_NS ? waited : 0;
}

/* The calls of @function that took less than TRIVIAL_NS.  If only the mean is
 * known, preemption may hide some of them. */
static uint64_t trivial_calls(const struct model *model,
			      const struct function *function)
{
	const struct sums *sums = &function->sums;
	uint64_t calls = 0;
	int i;

	if (!function->histogram)
		return sums->total < (double)sums->calls * TRIVIAL_NS ?
			       sums->calls :
			       0;
	for (i = 0; i < SHIM_BUCKETS; i++)
		if (ldexp(model->bucket_ns, i) < TRIVIAL_NS)
			calls += function->histogram[i];
	return calls;
}

bool advice_has_trivial_calls(const struct model *model)
{
	uint64_t trivial = 0;
	uint32_t i;

	if (!model->has_times || model->is_sampled || model->budget ||
	    model->calls < MANY_CALLS)
		return false;
	for (i = 0; i < model->function_count; i++)
		trivial += trivial_calls(model, &model->functions[i]);
	return trivial > model->calls / 2;
}

/* --- remedies */

bool advice_has_cxx(const struct model *model)
{
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		if (model->functions[i].mangled &&
		    !strncmp(model->functions[i].mangled, "_Z", 2))
			return true;
	return false;
}

/* The function with the most trivial calls that is not in @reported; or NULL. */
const struct function *
advice_most_trivial(const struct model *model,
		    const struct function *const *reported,
		    uint32_t reported_count)
{
	const struct function *most = NULL, *function;
	uint64_t calls, most_calls = 0;
	uint32_t i, n;

	for (i = 0; i < model->function_count; i++) {
		function = &model->functions[i];
		for (n = 0; n < reported_count && reported[n] != function; n++)
			;
		calls = trivial_calls(model, function);
		if (n == reported_count && function->is_named &&
		    calls > most_calls) {
			most = function;
			most_calls = calls;
		}
	}
	return most;
}
