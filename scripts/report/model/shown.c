/*
 * Folding takes place after self times and totals are known, because both need the nodes
 * as they were recorded: the cost of a hook belongs to the function that it was in.
 *
 * Paths are numbered anew in their old order, so children keep higher numbers than their
 * parents.  Equal functions that now have the same caller become one path.
 */
#include <fnmatch.h>
#include <math.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "model/exceptions.h"
#include "model/locks.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/shown.h"
#include "model/snapshots.h"
#include "model/totals.h"

bool selection_is_given(const struct selection *selection)
{
	return selection->hide.count || selection->only.count ||
	       selection->focus || selection->merges_recursion;
}

bool shown_hides(const struct model *model, uint32_t function)
{
	return model->hidden && model->hidden->is_hidden[function];
}

/* --- which functions --- */

/* "ns::f" also matches "ns::f()". */
static bool matches_short(const char *pattern, const char *brief)
{
	size_t length = strlen(brief);
	const char *plain;

	if (!fnmatch(pattern, brief, 0))
		return true;
	if (length < 2 || strcmp(brief + length - 2, "()"))
		return false;
	plain = keep_text(brief, length - 2);
	return !strcmp(pattern, plain) || !fnmatch(pattern, plain, 0);
}

static bool matches(const struct function *function, const char *pattern)
{
	return !strcmp(pattern, function->name) ||
	       !fnmatch(pattern, function->name, 0) ||
	       !fnmatch(pattern, function->mangled, 0) ||
	       matches_short(pattern, function->short_name);
}

static bool matches_any(const struct function *function,
			const struct patterns *patterns)
{
	uint32_t i;

	for (i = 0; i < patterns->count; i++)
		if (matches(function, patterns->text[i]))
			return true;
	return false;
}

static void compile(regex_t *regex, const char *text)
{
	char why[128];
	int error = regcomp(regex, text, REG_EXTENDED | REG_NOSUB);

	if (!error)
		return;
	regerror(error, regex, why, sizeof(why));
	die_usage("--focus '%s': %s", text, why);
}

static bool *find_hidden(const struct model *model,
			 const struct selection *selection)
{
	bool *is_hidden = allocate(model->function_count, sizeof(*is_hidden));
	uint32_t i;

	for (i = 0; i < model->function_count; i++) {
		const struct function *function = &model->functions[i];

		is_hidden[i] = matches_any(function, &selection->hide) ||
			       (selection->only.count &&
				!matches_any(function, &selection->only));
	}
	return is_hidden;
}

static bool *find_focus(const struct model *model,
			const struct selection *selection)
{
	bool *is_focus = allocate(model->function_count, sizeof(*is_focus));
	regex_t regex;
	uint32_t i;

	compile(&regex, selection->focus);
	for (i = 0; i < model->function_count; i++)
		is_focus[i] = !regexec(&regex, model->functions[i].name, 0,
				       NULL, 0);
	regfree(&regex);
	return is_focus;
}

static void warn_of_unused(const struct model *model,
			   const struct selection *selection)
{
	uint32_t i, n;

	for (n = 0; n < selection->hide.count; n++) {
		for (i = 0; i < model->function_count; i++)
			if (matches(&model->functions[i],
				    selection->hide.text[n]))
				break;
		if (i == model->function_count)
			warn("--hide '%s': no recorded function has such a "
			     "name",
			     selection->hide.text[n]);
	}
}

static _Noreturn void die_empty(const struct model *model)
{
	die("%s: --hide, --only and --focus leave no function to show",
	    model->recording->path);
}

static void check_any(const struct model *model, const bool *functions,
		      bool wanted)
{
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		if (functions[i] == wanted)
			return;
	if (model->function_count)
		die_empty(model);
}

bool *shown_find_hidden(const struct model *model,
			const struct selection *selection)
{
	return selection->hide.count || selection->only.count ?
		       find_hidden(model, selection) :
		       NULL;
}

bool *shown_find_focus(const struct model *model,
		       const struct selection *selection)
{
	return selection->focus ? find_focus(model, selection) : NULL;
}

void shown_check_functions(const struct model *model,
			   const struct selection *selection,
			   const bool *is_hidden, const bool *is_focus)
{
	warn_of_unused(model, selection);
	if (is_hidden)
		check_any(model, is_hidden, false);
	if (is_focus)
		check_any(model, is_focus, true);
}

void shown_check(const struct model *model)
{
	uint32_t i;

	if (!model->hidden)
		return;
	warn_of_unused(model, model->selection);
	for (i = 1; i < model->path_count; i++)
		if (model->paths[i].function != NONE)
			return;
	if (model->hidden->functions)
		die_empty(model);
}

/* --- which paths --- */

enum place {
	INSIDE, /* in focus; without --focus, all paths are */
	ABOVE,	/* leads there */
	OUTSIDE,
};

/* The flag of a key that is a place. */
#define PLACE_KEY 0x80000000u

struct folding {
	struct model *model;
	struct path *paths; /* paths that remain */
	uint32_t count;
	struct map
		path_by_key; /* "caller and function", to a path that remains */
	enum place *place;   /* by old path */
	/* By old path: its new number, and the path that gets its own values;
	 * or NONE. */
	uint32_t *numbers, *own;
};

static void find_places(struct folding *folding)
{
	const struct model *model = folding->model;
	bool *is_focus;
	uint32_t i;

	folding->place = allocate(model->path_count, sizeof(enum place));
	if (!model->selection->focus)
		return;
	is_focus = find_focus(model, model->selection);
	for (i = 0; i < model->path_count; i++) {
		const struct path *path = &model->paths[i];
		bool is_below = i && folding->place[path->parent] == INSIDE;

		folding->place[i] = is_below || (path->function != NONE &&
						 is_focus[path->function]) ?
					    INSIDE :
					    OUTSIDE;
	}
	free(is_focus);
	for (i = model->path_count - 1; i > 0; i--) {
		enum place *above = &folding->place[model->paths[i].parent];

		if (folding->place[i] != OUTSIDE && *above == OUTSIDE)
			*above = ABOVE;
	}
}

/* A path that leads to the focus has no time of its own; its total is added up
 * again. */
static void clear_above(struct path *path, bool is_sampled)
{
	path->self = path->self_raw = path->self_most = path->self_tick = 0;
	path->self_variance = path->variance = path->raw_variance = 0;
	path->total = path->total_raw = path->total_most = 0;
	path->own = 0;
	path->own_raw = 0;
	path->waited = path->raw_waited = path->waited_least = 0;
	path->has_waited = false;
	path->has_no_range = true;
	if (is_sampled)
		path->calls = 0;
}

static void clear_paths_above(struct folding *folding)
{
	struct model *model = folding->model;
	struct path *path, *parent;
	uint32_t i;

	for (i = 0; i < model->path_count; i++)
		if (folding->place[i] != INSIDE)
			clear_above(&model->paths[i], model->is_sampled);
	for (i = model->path_count - 1; i > 0; i--) {
		path = &model->paths[i];
		parent = &model->paths[path->parent];
		if (folding->place[i] == OUTSIDE ||
		    folding->place[path->parent] != ABOVE)
			continue;
		parent->total += path->total;
		parent->total_raw += path->total_raw;
		parent->total_most += path->total_most;
		parent->variance += path->variance;
		parent->raw_variance += path->raw_variance;
		if (model->is_sampled && parent->function != NONE)
			parent->calls += path->calls;
	}
}

/* --- folding --- */

/* Adds the path's own values. */
static void add_own(struct path *to, const struct path *path)
{
	to->self += path->self;
	to->self_raw += path->self_raw;
	to->self_most += path->self_most;
	to->self_variance += path->self_variance;
	to->self_tick = fmax(to->self_tick, path->self_tick);
	to->cost += path->cost;
	to->own += path->own;
	to->own_raw += path->own_raw;
	to->guessed += path->guessed;
	to->waited += path->waited;
	to->raw_waited += path->raw_waited;
	to->waited_least = fmax(to->waited_least, path->waited_least);
	to->has_waited |= path->has_waited;
	to->is_sampled |= path->is_sampled;
}

static void add_calls(struct path *to, const struct path *path)
{
	to->calls += path->calls;
	to->open += path->open;
	to->older += path->older;
	to->untimed += path->untimed;
	add_missing(&to->missing, &path->missing);
	to->min = fmin(to->min, path->min);
	to->max = fmax(to->max, path->max);
	to->min_most = fmin(to->min_most, path->min_most);
	to->max_most = fmax(to->max_most, path->max_most);
	to->has_no_range |= path->has_no_range;
	to->is_timed |= path->is_timed;
}

void path_add(struct path *to, const struct path *path)
{
	add_own(to, path);
	add_calls(to, path);
	to->total += path->total;
	to->total_raw += path->total_raw;
	to->total_most += path->total_most;
	to->tick = fmax(to->tick, path->tick);
	to->variance += path->variance;
	to->raw_variance += path->raw_variance;
}

static void keep_path(struct folding *folding, uint32_t number, uint32_t parent)
{
	const struct path *path = &folding->model->paths[number];
	uint64_t key = (uint64_t)parent << 32 |
		       (path->place == NONE ? path->function :
					      path->place | PLACE_KEY);
	uint32_t found = path->function == NONE ? folding->count :
						  map_add(&folding->path_by_key,
							  key, folding->count);

	folding->numbers[number] = found;
	if (found < folding->count) {
		path_add(&folding->paths[found], path);
		return;
	}
	folding->paths[folding->count] = *path;
	folding->paths[folding->count].parent = parent;
	folding->paths[folding->count].child = NONE;
	folding->paths[folding->count++].sibling = NONE;
}

static void fold_path(struct folding *folding, uint32_t number)
{
	struct model *model = folding->model;
	const struct path *path = &model->paths[number];
	uint32_t parent = number ? folding->numbers[path->parent] : NONE;
	struct path *caller = number ? &folding->paths[parent] : NULL;

	if (caller && path->function != NONE &&
	    model->hidden->is_hidden[path->function]) {
		add_own(caller, path);
		model->hidden->calls += path->calls;
		folding->numbers[number] = parent;
	} else if (caller && path->function != NONE &&
		   path->function == caller->function &&
		   model->selection->merges_recursion) {
		add_own(caller, path);
		if (!model->is_sampled)
			add_calls(caller, path);
		folding->numbers[number] = parent;
	} else {
		keep_path(folding, number, parent);
	}
}

static void fold_paths(struct folding *folding)
{
	struct model *model = folding->model;
	uint32_t i;

	for (i = 0; i < model->path_count; i++) {
		folding->numbers[i] = folding->own[i] = NONE;
		if (folding->place[i] != OUTSIDE || i == 0)
			fold_path(folding, i);
		else if (model->paths[i].function == NONE)
			keep_path(folding, i, 0); /* a thread's root */
		else
			model->hidden->calls += model->paths[i].calls;
		if (folding->place[i] == INSIDE)
			folding->own[i] = folding->numbers[i];
	}
}

static bool *find_functions_on_paths(const struct model *model)
{
	bool *is_there = allocate(model->function_count, sizeof(*is_there));
	uint32_t i;

	for (i = 0; i < model->path_count; i++)
		if (model->paths[i].function != NONE)
			is_there[model->paths[i].function] = true;
	return is_there;
}

/* @was_there: whether it had paths before.  Remaining time of no function is
 * outside. */
static void count_hidden(struct model *model, const bool *was_there)
{
	struct hidden *hidden = model->hidden;
	bool *is_there = find_functions_on_paths(model);
	uint32_t i;

	for (i = 0; i < model->path_count; i++)
		if (model->paths[i].function == NONE)
			hidden->outside += model->paths[i].self;
	for (i = 0; i < model->function_count; i++) {
		hidden->is_hidden[i] = was_there[i] && !is_there[i];
		hidden->functions += hidden->is_hidden[i];
	}
	free(is_there);
}

static void move_others(struct folding *folding)
{
	struct model *model = folding->model;
	uint32_t i;

	for (i = 0; i < model->thread_count; i++)
		model->threads[i].path =
			folding->numbers[model->threads[i].path];
	memory_move(model, folding->own);
	snapshots_move(model, folding->own);
	locks_move(model, folding->own, folding->numbers);
	exceptions_move(model, folding->own, folding->numbers);
}

bool shown_fold(struct model *model)
{
	struct folding folding = { .model = model };
	uint32_t before = model->path_count;
	bool *was_there;

	if (!selection_is_given(model->selection))
		return false;
	model->hidden = allocate(1, sizeof(*model->hidden));
	model->hidden->is_hidden = find_hidden(model, model->selection);
	model->hidden->has_focus = model->selection->focus != NULL;
	model->hidden->time = model->paths[0].total;
	was_there = find_functions_on_paths(model);
	find_places(&folding);
	if (model->hidden->has_focus)
		clear_paths_above(&folding);
	folding.paths = allocate(before, sizeof(*folding.paths));
	folding.numbers = allocate(before, sizeof(*folding.numbers));
	folding.own = allocate(before, sizeof(*folding.own));
	fold_paths(&folding);
	move_others(&folding);
	free(model->paths);
	model->paths = folding.paths;
	model->path_count = folding.count;
	model->path_room = before;
	count_hidden(model, was_there);
	free(was_there);
	free(folding.place);
	free(folding.numbers);
	free(folding.own);
	map_free(&folding.path_by_key);
	return true;
}
