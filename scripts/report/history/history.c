/*
 * Prints the times of a program, or of one function, by version, and where they
 * changed.  Without a function it also searches the functions that matter, at a level
 * that is divided by their number: of 100 functions that never change, one shows a
 * change in 100 reports.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/changes.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "base/text.h"
#include "base/welch.h"
#include "history/history.h"
#include "history/store.h"
#include "model/choose.h"
#include "model/model.h"
#include "model/options.h"
#include "read/recording.h"

#define LEVEL	    0.01
#define LEAST_SHARE 0.005 /* functions with less of the time are not searched */
#define LEAST	    0.01  /* smaller changes are not shown */
#define RUNS_NEEDED 5	  /* on each side: one order in 252 is as good */
#define POINTS_MAX  64

struct series {
	const char *name,
		*object; /* of the function; NULL: the whole program */
	double *times;	 /* by run */
	struct change_point points[POINTS_MAX];
	uint32_t count;
};

struct history {
	const struct options *options;
	struct store *store;
	struct store_runs runs;
	bool *begins; /* by run: whether it is the first one of its version */
	struct series shown;
	struct series *changed; /* functions that changed */
	uint32_t changed_count, changed_room;
};

/* The name of a recording without the directories around it. */
static const char *name_of(const char *path)
{
	size_t size = strlen(path);

	while (size > 1 && path[size - 1] == '/')
		size--;
	return base_name(keep_text(path, size));
}

void history_add(const struct options *options, char **paths, int count)
{
	struct store *store = store_open(options->database, true);
	struct recording recording;
	struct model model;
	int i, added = 0;

	store_begin(store);
	for (i = 0; i < count; i++) {
		progress("adding recordings", (uint64_t)i, (uint64_t)count);
		model_read(&model, &recording, options, paths[i]);
		if (!model.has_times && !model.is_sampled)
			die("%s: calls were counted, not timed", paths[i]);
		if (store_add(store,
			      options->version ? options->version :
						 name_of(paths[i]),
			      &model))
			added++;
		else
			warn("%s: is in %s already", paths[i],
			     options->database);
		model_free(&model);
		recording_free(&recording);
	}
	progress_end();
	store_commit(store);
	store_close(store);
	fprintf(stderr, "profrun: %d %s added to ", added,
		added == 1 ? "run" : "runs");
	put_text(stderr, options->database);
	fputc('\n', stderr);
}

/* --- changes --- */

static void find_changes(const struct history *history, struct series *series,
			 double level)
{
	uint32_t i, kept = 0;

	series->count = changes_find(series->times, history->begins,
				     history->runs.count, level, series->points,
				     POINTS_MAX);
	for (i = 0; i < series->count; i++) {
		const struct change_point *point = &series->points[i];

		if (fabs(point->after - point->before) >=
		    LEAST * fmax(fabs(point->before), fabs(point->after)))
			series->points[kept++] = *point;
	}
	series->count = kept;
}

static void find_changed_functions(struct history *history)
{
	uint32_t count, searched = 0, i;
	struct store_function *functions = store_functions(history->store, NULL,
							   &count);
	double mean = 0;

	for (i = 0; i < history->runs.count; i++)
		mean += history->runs.times[i] / history->runs.count;
	while (searched < count &&
	       functions[searched].mean_ns >= LEAST_SHARE * mean)
		searched++;
	for (i = 0; i < searched; i++) {
		struct series series = {
			.name = functions[i].name,
			.object = functions[i].object,
			.times = allocate(history->runs.count,
					  sizeof(*series.times)),
		};

		progress("searching", i, searched);
		store_read_times(history->store, &history->runs,
				 functions[i].id, false, series.times);
		find_changes(history, &series, LEVEL / searched);
		free(series.times);
		series.times = NULL;
		if (!series.count)
			continue;
		GROW(history->changed, history->changed_count,
		     history->changed_room);
		history->changed[history->changed_count++] = series;
	}
	progress_end();
	free(functions);
}

static void choose_series(struct history *history, const char *name)
{
	struct store_function *functions;
	uint32_t count;

	history->shown.times = allocate(history->runs.count,
					sizeof(*history->shown.times));
	if (!name) {
		memcpy(history->shown.times, history->runs.times,
		       history->runs.count * sizeof(*history->shown.times));
		return;
	}
	functions = store_functions(history->store, name, &count);
	if (!count)
		die("%s: has no function '%s'", history->options->database,
		    name);
	if (count > 1)
		warn("%u functions are called '%s'; this is %s of %s", count,
		     name, functions[0].name, functions[0].object);
	history->shown.name = functions[0].name;
	history->shown.object = functions[0].object;
	store_read_times(history->store, &history->runs, functions[0].id,
			 history->options->value == VALUE_TOTAL,
			 history->shown.times);
	free(functions);
}

static const struct store_version *version_at(const struct history *history,
					      uint32_t run)
{
	const struct store_version *version = history->runs.versions;

	while (version->first + version->count <= run)
		version++;
	return version;
}

static struct welch times_of(const struct history *history,
			     const struct store_version *version)
{
	struct welch welch = { 0 };
	uint32_t i;

	for (i = 0; i < version->count; i++)
		welch_add(&welch, history->shown.times[version->first + i]);
	return welch;
}

/* In percent; a function that is new has none. */
static double growth(const struct change_point *point)
{
	return point->before > 0 ?
		       (point->after - point->before) / point->before * 100 :
		       INFINITY;
}

/* --- text --- */

static void put_change(FILE *out, const struct change_point *point)
{
	if (isinf(growth(point)))
		fprintf(out, "%9s", "new");
	else
		fprintf(out, "%+7.1f %%", growth(point));
}

static void print_versions(FILE *out, const struct history *history)
{
	const struct series *shown = &history->shown;
	char text[SHORT_TEXT], more[SHORT_TEXT];
	uint32_t i, point = 0;

	fprintf(out, "%6s %9s %9s %9s  version\n", "runs", "mean", "deviation",
		"change");
	for (i = 0; i < history->runs.version_count; i++) {
		const struct store_version *version =
			&history->runs.versions[i];
		struct welch welch = times_of(history, version);
		double deviation = welch_deviation(&welch);

		fprintf(out, "%6u %9s %9s ", version->count,
			human_ns(text, welch.mean),
			time_text(more, deviation, !isnan(deviation)));
		if (point < shown->count &&
		    shown->points[point].at == version->first)
			put_change(out, &shown->points[point++]);
		else
			fprintf(out, "%9s", "");
		fputs("  ", out);
		put_text(out, version->name);
		fputc('\n', out);
	}
}

static void print_changed(FILE *out, const struct history *history)
{
	char text[SHORT_TEXT], more[SHORT_TEXT];
	uint32_t i, point;

	if (!history->changed_count)
		return;
	fprintf(out, "\n%9s %9s %9s  function, since version\n", "before",
		"after", "change");
	for (i = 0; i < history->changed_count; i++) {
		const struct series *series = &history->changed[i];

		for (point = 0; point < series->count; point++) {
			const struct change_point *at = &series->points[point];

			fprintf(out, "%9s %9s ", human_ns(text, at->before),
				human_ns(more, at->after));
			put_change(out, at);
			fputs("  ", out);
			put_text(out, series->name);
			fputs(" [", out);
			put_text(out, series->object);
			fputs("], ", out);
			put_text(out, version_at(history, at->at)->name);
			fputc('\n', out);
		}
	}
}

/* An empty column does not tell whether there was enough to look at. */
static void print_nothing_found(FILE *out, const struct history *history)
{
	if (history->shown.count || history->changed_count)
		return;
	if (history->runs.count < 2 * RUNS_NEEDED)
		fprintf(out,
			"\nno change can be told from noise: that takes "
			"%d runs before and after it\n",
			RUNS_NEEDED);
	else
		fputs("\nno change stands out from the noise\n", out);
}

static void print_text(FILE *out, const struct history *history)
{
	put_text(out, history->runs.program);
	if (history->shown.name) {
		fputs(", ", out);
		put_text(out, history->shown.name);
		fputs(history->options->value == VALUE_TOTAL ? ", total" :
							       ", self",
		      out);
	}
	fprintf(out, ": %u run%s of %u version%s (", history->runs.count,
		history->runs.count == 1 ? "" : "s",
		history->runs.version_count,
		history->runs.version_count == 1 ? "" : "s");
	put_text(out, history->options->database);
	fputs(")\n\n", out);
	print_versions(out, history);
	print_changed(out, history);
	print_nothing_found(out, history);
}

/* --- JSON --- */

static void put_number(struct json *json, const char *key, double value)
{
	if (isfinite(value))
		json_key_number(json, key, value, 15);
	else
		json_key_null(json, key);
}

static void put_points(struct json *json, const struct history *history,
		       const struct series *series)
{
	uint32_t i;

	for (i = 0; i < series->count; i++) {
		const struct change_point *point = &series->points[i];

		json_object(json);
		json_key_text(json, "function", series->name);
		json_key_text(json, "object", series->object);
		json_key_text(json, "version",
			      version_at(history, point->at)->name);
		put_number(json, "before_ns", point->before);
		put_number(json, "after_ns", point->after);
		put_number(json, "chance", point->chance);
		json_close_object(json);
	}
}

static void print_json(FILE *out, const struct history *history)
{
	struct json json = json_begin(out);
	uint32_t i;

	json_object(&json);
	json_key_text(&json, "database", history->options->database);
	json_key_text(&json, "program", history->runs.program);
	json_key_text(&json, "function", history->shown.name);
	json_key_text(&json, "object", history->shown.object);
	json_key_array(&json, "versions");
	for (i = 0; i < history->runs.version_count; i++) {
		struct welch welch = times_of(history,
					      &history->runs.versions[i]);

		json_object(&json);
		json_key_text(&json, "version", history->runs.versions[i].name);
		json_key_count(&json, "runs", welch.runs);
		put_number(&json, "mean_ns", welch.mean);
		put_number(&json, "deviation_ns", welch_deviation(&welch));
		json_close_object(&json);
	}
	json_close_array(&json);
	json_key_array(&json, "changes");
	put_points(&json, history, &history->shown);
	for (i = 0; i < history->changed_count; i++)
		put_points(&json, history, &history->changed[i]);
	json_close_array(&json);
	json_close_object(&json);
	json_end(&json);
}

/* --- --fail-above --- */

/* Whether it grew by more with the newest version. */
static bool has_grown(const struct history *history,
		      const struct series *series)
{
	const struct store_runs *runs = &history->runs;
	const char *name = series->name ? series->name : "the whole program";
	const struct change_point *last;

	if (!history->options->has_fail_above || !series->count)
		return false;
	last = &series->points[series->count - 1];
	if (last->at != runs->versions[runs->version_count - 1].first ||
	    growth(last) <= history->options->fail_above)
		return false;
	fprintf(stderr, "profrun: ");
	put_text(stderr, name);
	if (isinf(growth(last)))
		fprintf(stderr, ": new with ");
	else
		fprintf(stderr, ": %+.1f %% with ", growth(last));
	put_text(stderr, version_at(history, last->at)->name);
	fprintf(stderr, ", more than %g %%\n", history->options->fail_above);
	return true;
}

bool history_print(FILE *out, const struct options *options,
		   const char *function)
{
	struct history history = { .options = options };
	bool has_failed;
	uint32_t i;

	history.store = store_open(options->database, false);
	store_read_runs(history.store, &history.runs);
	if (!history.runs.count)
		die("%s: has no runs", options->database);
	history.begins = allocate(history.runs.count, sizeof(*history.begins));
	for (i = 0; i < history.runs.version_count; i++)
		history.begins[history.runs.versions[i].first] = true;
	choose_series(&history, function);
	find_changes(&history, &history.shown, LEVEL);
	if (!function)
		find_changed_functions(&history);
	if (!strcmp(options->format, "json"))
		print_json(out, &history);
	else
		print_text(out, &history);
	has_failed = has_grown(&history, &history.shown);
	for (i = 0; i < history.changed_count; i++)
		has_failed |= has_grown(&history, &history.changed[i]);
	store_close(history.store);
	store_free_runs(&history.runs);
	free(history.shown.times);
	free(history.changed);
	free(history.begins);
	return has_failed;
}
