/* One path after the other is added to the tree that it belongs to. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "model/bounds.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/shown.h"
#include "model/subtree.h"
#include "model/totals.h"

struct growing {
	const struct model *model;
	struct model tree;
	struct map
		path_by_key; /* "parent and function" to a path of the tree */
	uint32_t memory_room, below_room;
};

/* Makes the memory of the path that comes next. */
static void make_memory(struct growing *growing)
{
	struct model *tree = &growing->tree;

	if (!growing->model->memory)
		return;
	GROW(tree->memory, tree->path_count, growing->memory_room);
	GROW(tree->memory_below, tree->path_count, growing->below_room);
	tree->memory[tree->path_count] = (struct memory){ .samples = 0 };
	tree->memory_below[tree->path_count] = (struct memory){ .samples = 0 };
}

/* Adds the memory of the model's path @from to that of the tree's path @to. */
static void add_memory(struct growing *growing, uint32_t to, uint32_t from,
		       bool is_nested)
{
	const struct model *model = growing->model;
	struct model *tree = &growing->tree;

	if (!model->memory)
		return;
	memory_sum(&tree->memory[to], &model->memory[from]);
	if (is_nested)
		return;
	memory_sum(&tree->memory_below[to], &model->memory_below[from]);
	if (tree->paths[to].parent == 0)
		memory_sum(&tree->memory_below[0], &model->memory_below[from]);
}

/* Adds @path to the one of @function below @parent, and returns its number. */
static uint32_t add(struct growing *growing, uint32_t parent, uint32_t function,
		    const struct path *path)
{
	struct model *tree = &growing->tree;
	uint64_t key = (uint64_t)parent << 32 | function;
	uint32_t number = map_add(&growing->path_by_key, key, tree->path_count);

	if (number < tree->path_count) {
		path_add(&tree->paths[number], path);
		return number;
	}
	GROW(tree->paths, tree->path_count, tree->path_room);
	make_memory(growing);
	tree->paths[number] = *path;
	tree->paths[number].parent = parent;
	tree->paths[number].function = function;
	tree->paths[number].child = tree->paths[number].sibling = NONE;
	tree->path_count++;
	return number;
}

/* Its total is in that of an outer call. */
static struct path without_total(const struct path *path)
{
	struct path made = *path;

	made.total = made.total_raw = made.total_most = 0;
	made.variance = made.raw_variance = 0;
	return made;
}

static void add_callers(struct growing *growing, uint32_t called,
			bool is_nested, uint32_t depth)
{
	const struct path *paths = growing->model->paths;
	struct path path = is_nested ? without_total(&paths[called]) :
				       paths[called];
	uint32_t at = add(growing, 0, path.function, &path), number;

	add_memory(growing, at, called, is_nested);
	for (number = path.parent;
	     paths[number].function != NONE && depth-- > 0;
	     number = paths[number].parent) {
		/* How many samples of the called function are among those whose
		 * caller of this one is a guess is unknown. */
		path.guessed = paths[number].guessed < path.calls ?
				       paths[number].guessed :
				       path.calls;
		at = add(growing, at, paths[number].function, &path);
		add_memory(growing, at, called, is_nested);
	}
}

struct model subtree_of(const struct model *model, const bool *wanted,
			bool callers, uint32_t depth)
{
	struct growing growing = { .model = model, .tree = *model };
	/* Of each path: its number in the tree; NONE: it is in none. */
	uint32_t *inside = allocate(model->path_count, sizeof(*inside)), i;

	growing.tree.guesses_are_most = callers;
	growing.tree.paths = NULL;
	growing.tree.memory = growing.tree.memory_below = NULL;
	growing.tree.path_count = growing.tree.path_room = 0;
	GROW(growing.tree.paths, 0, growing.tree.path_room);
	make_memory(&growing);
	growing.tree.paths[0] = model->paths[0];
	growing.tree.paths[0].child = growing.tree.paths[0].sibling = NONE;
	growing.tree.path_count = 1;
	inside[0] = NONE;
	for (i = 1; i < model->path_count; i++) {
		const struct path *path = &model->paths[i];
		uint32_t above = inside[path->parent];
		bool is_wanted = path->function != NONE &&
				 wanted[path->function];

		inside[i] = above;
		if (callers && is_wanted) {
			add_callers(&growing, i, above != NONE, depth);
			inside[i] = 0;
		} else if (!callers && (is_wanted || above != NONE)) {
			inside[i] = add(&growing, above == NONE ? 0 : above,
					path->function, path);
			add_memory(&growing, inside[i], i, false);
		}
	}
	free(inside);
	map_free(&growing.path_by_key);
	paths_link(&growing.tree);
	paths_limit(&growing.tree);
	return growing.tree;
}

void subtree_free(struct model *tree)
{
	free(tree->paths);
	free(tree->memory);
	free(tree->memory_below);
}
