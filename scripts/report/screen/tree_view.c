/*
 * The call tree, or functions with their callers below them.  A row that is opened gets
 * the rows below it, the heaviest first.  Trees of callers are made when a function is
 * opened, because all of them together may be far larger than the call tree.
 */
#include <curses.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "model/bounds.h"
#include "model/guesses.h"
#include "model/model.h"
#include "model/options.h"
#include "model/row_order.h"
#include "model/subtree.h"
#include "model/totals.h"
#include "screen/numbers.h"
#include "screen/terminal.h"
#include "screen/tui.h"
#include "screen/view.h"
#include "screen/views.h"
#include "text/numbers.h"

#define CALLERS_DEPTH 200
/* A path that has most of its caller's time is opened with it. */
#define MOST 0.5
/* With so many paths, finding the callers of a function takes long. */
#define MANY_PATHS 50000

/* A model and what its paths weigh. */
struct forest {
	struct model model;
	double *weights; /* by path */
	struct forest *next;
};

struct branch {
	struct forest
		*forest; /* NULL: a function whose callers were not looked up */
	uint32_t path;	 /* of the forest */
	uint32_t function; /* NONE: a thread */
	uint32_t depth;
	bool is_open;
};

struct tree {
	struct view view;
	struct tui *tui;
	struct model *model;
	struct forest *forests; /* the first made is the last */
	struct branch *rows;
	uint32_t room;
	double all;
	bool callers;
};

/* Callers of one function have the calls of this function: none are below others. */
static double *weigh_callers(const struct model *model)
{
	double *weights = allocate(model->path_count, sizeof(*weights));
	uint32_t i;

	for (i = 1; i < model->path_count; i++)
		weights[i] = (double)model->paths[i].calls;
	return weights;
}

static struct forest *add_forest(struct tree *tree, const struct model *model)
{
	struct forest *forest = allocate(1, sizeof(*forest));

	forest->model = *model;
	forest->weights = tree->callers && !model->has_times ?
				  weigh_callers(model) :
				  paths_weigh(model);
	forest->next = tree->forests;
	tree->forests = forest;
	return forest;
}

static const double *sort_weights;

static int compare_branches(const void *left, const void *right)
{
	const struct branch *a = left, *b = right;

	if (sort_weights[a->path] != sort_weights[b->path])
		return sort_weights[a->path] > sort_weights[b->path] ? -1 : 1;
	return a->path < b->path ? -1 : a->path > b->path;
}

/* Inserts the rows below path @path of @forest before row @at; returns how many. */
static uint32_t insert_children(struct tree *tree, uint32_t at,
				struct forest *forest, uint32_t path,
				uint32_t depth)
{
	const struct path *paths = forest->model.paths;
	uint32_t child, count = 0, *total = &tree->view.list.count;

	for (child = paths[path].child; child != NONE;
	     child = paths[child].sibling)
		count++;
	if (*total + count > tree->room) {
		tree->room = 2 * (*total + count);
		tree->rows = grow(tree->rows, tree->room, sizeof(*tree->rows));
	}
	if (count == 0)
		return 0;
	memmove(tree->rows + at + count, tree->rows + at,
		(*total - at) * sizeof(*tree->rows));
	*total += count;
	for (child = paths[path].child; child != NONE;
	     child = paths[child].sibling)
		tree->rows[at++] = (struct branch){
			.forest = forest,
			.path = child,
			.function = paths[child].function,
			.depth = depth,
		};
	sort_weights = forest->weights;
	qsort(tree->rows + at - count, count, sizeof(*tree->rows),
	      compare_branches);
	return count;
}

/* Looks up the callers of a function. */
static void find_callers(struct tree *tree, struct branch *branch)
{
	bool *wanted = allocate(tree->model->function_count, sizeof(*wanted));
	struct model found;

	wanted[branch->function] = true;
	found = subtree_of(tree->model, wanted, true, CALLERS_DEPTH);
	free(wanted);
	branch->forest = add_forest(tree, &found);
	branch->path = found.paths[0].child;
}

static bool can_open(const struct branch *branch)
{
	return !branch->forest ||
	       (branch->path != NONE &&
		branch->forest->model.paths[branch->path].child != NONE);
}

/* Draws the reason why nothing else is drawn for some seconds. */
static void say_wait(struct screen *screen, const struct tree *tree,
		     const struct branch *branch)
{
	if (tree->model->path_count < MANY_PATHS)
		return;
	screen_say(screen, "looking for the callers of %s",
		   tree->model->functions[branch->function].short_name);
	screen_draw(screen);
	screen->message[0] = '\0';
}

/* @screen may be NULL if callers are known. */
static bool open_row(struct screen *screen, struct tree *tree, uint32_t number)
{
	struct branch *branch = &tree->rows[number];

	if (branch->is_open)
		return false;
	if (!branch->forest) {
		say_wait(screen, tree, branch);
		find_callers(tree, branch);
	}
	if (!can_open(branch))
		return false;
	branch->is_open = true;
	insert_children(tree, number + 1, branch->forest, branch->path,
			branch->depth + 1);
	return true;
}

static void close_row(struct tree *tree, uint32_t number)
{
	uint32_t end = number + 1, *count = &tree->view.list.count;

	while (end < *count && tree->rows[end].depth > tree->rows[number].depth)
		end++;
	memmove(tree->rows + number + 1, tree->rows + end,
		(*count - end) * sizeof(*tree->rows));
	*count -= end - number - 1;
	tree->rows[number].is_open = false;
}

/* Opens the row, and below it what has most of its time. */
static void open_hot(struct screen *screen, struct tree *tree, uint32_t number)
{
	while (open_row(screen, tree, number)) {
		const struct branch *row = &tree->rows[number];
		double weight = row->forest->weights[row->path];
		const struct branch *first = row + 1;

		if (first->forest->weights[first->path] < MOST * weight)
			break;
		number++;
	}
}

static void close_all(struct tree *tree)
{
	uint32_t i;

	for (i = 0; i < tree->view.list.count; i++)
		if (tree->rows[i].is_open)
			close_row(tree, i);
	tree->view.list.chosen = 0;
}

/* The row of the caller. */
static void go_up(struct tree *tree)
{
	uint32_t at = tree->view.list.chosen, depth = tree->rows[at].depth;

	while (at > 0 && depth > 0 && tree->rows[at].depth >= depth)
		at--;
	tree->view.list.chosen = at;
}

static void draw_title(struct view *view, struct row *row)
{
	const struct tree *tree = (struct tree *)view;

	row_text_as(row, tree->callers ? "callers" : "call tree", LOOK_STRONG);
	row_text(row, tree->callers ? ": below each function are its callers, "
				      "below them theirs" :
				      ": below each function are its callees");
}

static void draw_columns(struct view *view, struct row *row)
{
	const struct model *model = ((struct tree *)view)->model;

	row_number(row, model->has_times ? "total%" : "calls%", PERCENT_WIDTH);
	row_number(row, "total", TIME_WIDTH);
	row_number(row, "self", TIME_WIDTH);
	row_number(row, counted_name(model), calls_width(model));
	row_text(row, "call path");
}

static void draw_numbers(const struct tree *tree, const struct branch *branch,
			 struct row *row)
{
	const struct model *model = &branch->forest->model;
	const struct path *path = &model->paths[branch->path];
	bool known = model->has_times &&
		     (path->function == NONE || path->is_timed);
	char text[SHORT_TEXT];

	cell_percent(row, branch->forest->weights[branch->path], tree->all,
		     true);
	row_number(row,
		   bounded_text(text, path_total(path), path_total_bound(path),
				known),
		   TIME_WIDTH);
	row_number(row,
		   bounded_text(text, path_self(path), path_self_bound(path),
				known),
		   TIME_WIDTH);
	cell_path_calls(row, model, path);
}

/* Of a function whose callers were not looked up. */
static void draw_sums(const struct tree *tree, const struct branch *branch,
		      struct row *row)
{
	const struct model *model = tree->model;
	const struct sums *sums = &model->functions[branch->function].sums;

	cell_percent(row, model->has_times ? sums->total : (double)sums->calls,
		     tree->all, true);
	cell_total(row, sums, model->time);
	cell_self(row, sums, model->time);
	cell_calls(row, model, sums);
}

static void draw_thread(const struct tree *tree, const struct branch *branch,
			struct row *row)
{
	const struct model *model = tree->model;
	const struct thread *thread =
		&model->threads[model->paths[branch->path].thread];
	char text[64];

	snprintf(text, sizeof(text), "thread %u ", thread->tid);
	row_text(row, text);
	row_text(row, thread->name);
}

static const char *guess_of(char note[GUESS_NOTE], const struct tree *tree,
			    const struct branch *branch)
{
	const struct model *model = branch->forest ? &branch->forest->model :
						     tree->model;
	const struct sums *sums =
		&tree->model->functions[branch->function].sums;
	const struct path *path;

	if (!branch->forest || branch->path == NONE)
		return guess_note(note, "caller ", sums->guessed, sums->calls,
				  false);
	path = &model->paths[branch->path];
	return guess_note(note, "caller ", path->guessed, path->calls,
			  model->guesses_are_most);
}

static void draw_row(struct view *view, uint32_t number, struct row *row)
{
	const struct tree *tree = (struct tree *)view;
	const struct branch *branch = &tree->rows[number];
	int indent = (int)branch->depth * 2;
	char note[GUESS_NOTE];

	if (branch->forest && branch->path != NONE)
		draw_numbers(tree, branch, row);
	else
		draw_sums(tree, branch, row);
	/* A deep path stays in sight. */
	if (indent > row_left(row) / 2)
		indent = row_left(row) / 2;
	row_skip(row, indent);
	row_text(row, branch->is_open ? "- " : can_open(branch) ? "+ " : "  ");
	if (branch->function == NONE)
		draw_thread(tree, branch, row);
	else
		draw_noted_function(row,
				    &tree->model->functions[branch->function],
				    tree->tui, guess_of(note, tree, branch));
}

static bool matches(struct view *view, uint32_t number, const char *text)
{
	const struct tree *tree = (struct tree *)view;
	uint32_t function = tree->rows[number].function;

	return function != NONE &&
	       strcasestr(tree->model->functions[function].name, text);
}

static bool do_key(struct screen *screen, struct view *view, int key)
{
	struct tree *tree = (struct tree *)view;
	uint32_t at = view->list.chosen;
	struct branch *branch;

	if (view->list.count == 0)
		return tui_key(screen, tree->tui, key);
	branch = &tree->rows[at];
	if (IS_ENTER(key)) {
		if (branch->is_open)
			close_row(tree, at);
		else
			open_row(screen, tree, at);
		return true;
	}
	switch (key) {
	case '+':
	case 'l':
	case KEY_RIGHT: open_row(screen, tree, at); break;
	case '-':
	case KEY_LEFT:
		if (branch->is_open)
			close_row(tree, at);
		else
			go_up(tree);
		break;
	case 'e': open_hot(screen, tree, at); break;
	case 'E': close_all(tree); break;
	case 'o':
		if (branch->function != NONE)
			screen_push(screen,
				    tree->tui->views->function(
					    tree->tui, branch->function));
		break;
	default: return tui_key(screen, tree->tui, key);
	}
	return true;
}

static void end(struct view *view)
{
	struct tree *tree = (struct tree *)view;
	struct forest *forest, *next;

	for (forest = tree->forests; forest; forest = next) {
		next = forest->next;
		/* The first is the model itself. */
		if (forest->model.paths != tree->model->paths)
			subtree_free(&forest->model);
		free(forest->weights);
		free(forest);
	}
	free(tree->rows);
	free(tree);
}

static const struct view_kind kind = {
	.keys = " ? help  Enter open  e hot path  o function  " TUI_KEYS,
	.help = "Enter     open or close a row\n"
		"right, +  open;  left, -  close, then go to the caller\n"
		"e         open the hot path: while one callee has half of the time\n"
		"E         close all\n"
		"o         the function: its numbers, callers and callees\n" TUI_HELP,
	.title = draw_title,
	.columns = draw_columns,
	.draw = draw_row,
	.key = do_key,
	.matches = matches,
	.end = end,
};

static void add_functions(struct tree *tree)
{
	struct options options = *tree->tui->options;
	const struct model *model = tree->model;
	struct sums *sums = sums_of_functions(model);
	uint32_t i, count, *order;

	options.sort = model->has_times ? SORT_SELF : SORT_CALLS;
	options.sort_given = true;
	order = row_order_functions(model, sums, &options, &count);
	tree->rows = allocate(count, sizeof(*tree->rows));
	tree->room = count;
	for (i = 0; i < count; i++)
		tree->rows[i] = (struct branch){ .function = order[i],
						 .path = NONE };
	tree->view.list.count = count;
	free(order);
	free(sums);
}

struct view *tree_view(struct tui *tui, struct model *model, uint32_t root,
		       bool callers)
{
	struct tree *tree = allocate(1, sizeof(*tree));
	uint32_t child;

	tree->view.kind = &kind;
	tree->tui = tui;
	tree->model = model;
	if (callers) {
		tree->callers = true;
		tree->all = model->has_times ? model->time :
					       (double)model->calls;
		add_functions(tree);
		return &tree->view;
	}
	add_forest(tree, model);
	for (child = model->paths[root].child; child != NONE;
	     child = model->paths[child].sibling)
		tree->all += fmax(tree->forests->weights[child], 0);
	insert_children(tree, 0, tree->forests, root, 0);
	if (tree->view.list.count == 1)
		open_hot(NULL, tree, 0);
	return &tree->view;
}
