/*
 * Exports one line per call path, "name;name;name COUNT", in the order of
 * strcmp().  The lines are never in memory together.  Paths are merged by name
 * into a tree; since names contain no ';', all lines below a node of this tree
 * are consecutive in the sorted output.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/format.h"
#include "model/bounds.h"
#include "model/functions.h"
#include "model/locks.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/paths.h"

/* All paths with equal names. */
struct fold {
	uint32_t name;
	uint32_t child, sibling;
	uint32_t depth;
	double ns;
	uint64_t calls; /* or the value of another --value */
};

/* One line, or all lines that begin with @name and ';'. */
struct item {
	const char *name;
	uint32_t fold;
	uint64_t value;
	bool is_subtree;
};

/* A fold whose items are being printed: items[next..end). */
struct level {
	size_t begin, next, end;
	size_t line_length; /* length of the line before its names */
};

struct folding {
	const struct model *model;
	const struct options *options;
	FILE *out;
	struct names names;
	uint32_t *place_names; /* by place, NONE: not added; or NULL */
	struct fold *folds;
	uint32_t fold_count, fold_room;
	struct item *items;
	size_t item_count, item_room;
	struct level *levels;
	uint32_t level_count, level_room;
	char *line;
	size_t line_room;
	uint64_t cut_calls, lines;
	uint64_t outside; /* memory that belongs to no function */
};

/* Makes a name that can stand between two ';' of a line. */
static const char *clean_name(const char *name)
{
	char *copy = (char *)keep_text(name, SIZE_MAX), *at;

	make_harmless(copy);
	for (at = copy; (at = strchr(at, ';'));)
		*at = ':';
	return copy;
}

static uint32_t *name_functions(struct folding *folding)
{
	const struct model *model = folding->model;
	uint32_t *names = allocate(model->function_count, sizeof(*names));
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		names[i] = names_add(&folding->names,
				     clean_name(shown_name(&model->functions[i],
							   folding->options)));
	return names;
}

static uint32_t name_thread(struct folding *folding, uint32_t number)
{
	const struct thread *thread = &folding->model->threads[number];
	const char *name = keep_format(
		"%u/%u %s",
		folding->model->recording->processes[thread->process].pid,
		thread->tid, thread->name);

	return names_add(&folding->names, clean_name(name));
}

/* "function (file.c:12)", as other profilers have it. */
static uint32_t name_place(struct folding *folding, const struct path *path)
{
	const struct model *model = folding->model;
	const struct frame_place *place = &model->frames.places[path->place];
	uint32_t *known;

	if (!folding->place_names) {
		folding->place_names = allocate(model->frames.function_count,
						sizeof(uint32_t));
		memset(folding->place_names, 0xff,
		       model->frames.function_count * sizeof(uint32_t));
	}
	known = &folding->place_names[path->place];
	if (*known == NONE)
		*known = names_add(
			&folding->names,
			clean_name(keep_format(
				"%s (%s:%d)",
				shown_name(&model->functions[path->function],
					   folding->options),
				base_name(place->file), place->line)));
	return *known;
}

/* @names: of functions. */
static uint32_t name_path(struct folding *folding, const struct path *path,
			  const uint32_t *names)
{
	if (path->function == NONE)
		return name_thread(folding, path->thread);
	if (path->place != NONE)
		return name_place(folding, path);
	return names[path->function];
}

static uint32_t find_fold(struct folding *folding, struct map *map,
			  uint32_t parent, uint32_t name)
{
	uint64_t key = (uint64_t)parent << 32 | name;
	uint32_t fold = map_add(map, key, folding->fold_count);

	if (fold < folding->fold_count)
		return fold;
	GROW(folding->folds, folding->fold_count, folding->fold_room);
	folding->folds[folding->fold_count++] = (struct fold){
		.name = name,
		.child = NONE,
		.sibling = folding->folds[parent].child,
		.depth = folding->folds[parent].depth + 1,
	};
	folding->folds[parent].child = fold;
	return fold;
}

/* Adds the path's own value, without its callees. */
static uint64_t counted(const struct folding *folding, const struct path *path)
{
	const struct model *model = folding->model;

	if (folding->options->value == VALUE_WAITS)
		return whole(
			locks_waited(model, (uint32_t)(path - model->paths)));
	if (folding->options->value >= VALUE_BYTES)
		return memory_value(&model->memory[path - model->paths],
				    folding->options->value);
	return model->is_sampled ? path->own : path->calls;
}

static void add_path(struct folding *folding, struct fold *fold,
		     const struct path *path)
{
	fold->calls += counted(folding, path);
	if (folding->options->value == VALUE_SELF)
		fold->ns += shown_self(path->self, path->total);
	else if (folding->options->value == VALUE_TOTAL)
		fold->ns += path->total;
}

/* A path beyond --max-depth counts for its ancestor at that depth. */
static void fold_paths(struct folding *folding)
{
	const struct model *model = folding->model;
	uint32_t *names = name_functions(folding);
	uint32_t *folds = allocate(model->path_count, sizeof(*folds));
	const struct path *path = model->paths;
	struct map map = { 0 };
	uint32_t i, parent, name;

	GROW(folding->folds, folding->fold_count, folding->fold_room);
	folding->folds[folding->fold_count++] = (struct fold){
		.child = NONE, .sibling = NONE
	};
	for (i = 1; i < model->path_count; i++) {
		path = &model->paths[i];
		parent = folds[path->parent];
		if (folding->folds[parent].depth >=
		    folding->options->max_depth) {
			folds[i] = parent;
			folding->cut_calls += counted(folding, path);
			/* The ancestor's total already includes this total. */
			if (folding->options->value == VALUE_TOTAL)
				continue;
		} else {
			name = name_path(folding, path, names);
			folds[i] = find_fold(folding, &map, parent, name);
		}
		if (path->function != NONE)
			add_path(folding, &folding->folds[folds[i]], path);
	}
	map_free(&map);
	free(folds);
	free(names);
}

static uint64_t fold_value(const struct folding *folding,
			   const struct fold *fold)
{
	return folding->options->value >= VALUE_CALLS ? fold->calls :
							whole(fold->ns);
}

/*
 * Compares two lines: a name, followed by " COUNT" or by ';'.  Equal names
 * differ there, because each subtree has only one item.
 */
static int compare_items(const void *left, const void *right)
{
	const struct item *items[2] = { left, right };
	const char *at[2] = { items[0]->name, items[1]->name };
	char tails[2][24];
	int i;

	while (*at[0] && *at[0] == *at[1]) {
		at[0]++;
		at[1]++;
	}
	if (*at[0] && *at[1])
		return (unsigned char)*at[0] - (unsigned char)*at[1];
	for (i = 0; i < 2; i++)
		if (items[i]->is_subtree)
			strcpy(tails[i], ";");
		else
			snprintf(tails[i], sizeof(tails[i]), " %" PRIu64,
				 items[i]->value);
	if (!*at[0] && !*at[1])
		return strcmp(tails[0], tails[1]);
	/* One name ends here and the other continues: compare the rest with the
	 * tail. */
	return !*at[0] ? strcmp(tails[0], at[1]) : strcmp(at[0], tails[1]);
}

static void add_item(struct folding *folding, uint32_t fold, uint64_t value,
		     bool is_subtree)
{
	GROW(folding->items, folding->item_count, folding->item_room);
	folding->items[folding->item_count++] = (struct item){
		.name = folding->names.text[folding->folds[fold].name],
		.fold = fold,
		.value = value,
		.is_subtree = is_subtree,
	};
}

static void push_level(struct folding *folding, uint32_t fold,
		       size_t line_length)
{
	struct level level = { .begin = folding->item_count,
			       .line_length = line_length };
	const struct fold *folds = folding->folds;
	uint32_t i;
	uint64_t value;

	for (i = folds[fold].child; i != NONE; i = folds[i].sibling) {
		value = fold_value(folding, &folds[i]);
		if (value)
			add_item(folding, i, value, false);
		if (folds[i].child != NONE)
			add_item(folding, i, 0, true);
	}
	level.next = level.begin;
	level.end = folding->item_count;
	if (level.end > level.begin)
		qsort(folding->items + level.begin, level.end - level.begin,
		      sizeof(struct item), compare_items);
	GROW(folding->levels, folding->level_count, folding->level_room);
	folding->levels[folding->level_count++] = level;
}

static void print_next(struct folding *folding)
{
	struct level *level = &folding->levels[folding->level_count - 1];
	struct item item;
	size_t length;

	if (level->next == level->end) {
		folding->item_count = level->begin;
		folding->level_count--;
		return;
	}
	item = folding->items[level->next++];
	length = strlen(item.name);
	if (level->line_length + length + 1 > folding->line_room) {
		folding->line_room = (level->line_length + length + 1) * 2;
		folding->line = grow(folding->line, folding->line_room, 1);
	}
	memcpy(folding->line + level->line_length, item.name, length);
	length += level->line_length;
	if (item.is_subtree) {
		folding->line[length++] = ';';
		push_level(folding, item.fold, length);
		return;
	}
	folding->lines++;
	fwrite(folding->line, 1, length, folding->out);
	fprintf(folding->out, " %" PRIu64 "\n", item.value);
}

static void folded_print(FILE *out, struct model *model,
			 const struct options *options)
{
	struct folding folding = { .model = model,
				   .options = options,
				   .out = out };

	if (options->value == VALUE_WAITS)
		folding.outside = locks_waited_outside(model);
	if (options->value >= VALUE_BYTES)
		folding.outside = memory_value(&model->memory_outside,
					       options->value);
	fold_paths(&folding);
	push_level(&folding, 0, 0);
	while (folding.level_count)
		print_next(&folding);
	if (folding.cut_calls)
		warn("%" PRIu64 " calls deeper than %u frames are in the lines "
		     "of their ancestors at that depth (--max-depth)",
		     folding.cut_calls, options->max_depth);
	if (folding.outside)
		fprintf(out, "%s %" PRIu64 "\n", MEMORY_OUTSIDE,
			folding.outside);
	if (!folding.lines && !folding.outside && model->calls)
		warn("nothing to print: no path has a value above 0");
	names_free(&folding.names);
	free(folding.place_names);
	free(folding.folds);
	free(folding.items);
	free(folding.levels);
	free(folding.line);
}

EXPORT_FORMAT(folded) = {
	.name = "folded",
	.extension = "folded",
	.description = "call paths, one a line, for flame graphs",
	.values = VALUES_OF_CALLS | VALUES_OF_MEMORY | VALUE_BIT(VALUE_WAITS),
	.may_have_lines = true,
	.print = folded_print,
};
