/*
 * Exceptions by type, with the paths that throw and those that catch them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/search.h"
#include "model/exceptions.h"
#include "model/model.h"
#include "model/node_times.h"
#include "model/options.h"
#include "names/symbols.h"
#include "read/calltree.h"
#include "read/process.h"

/* --- reading --- */

/* "3Foo" becomes Foo: each type has a symbol of this kind. */
static const char *type_name(const char *name)
{
	static const char prefix[] = "typeinfo for ";
	const char *text = demangle(keep_format("_ZTI%s", name));

	return strncmp(text, prefix, strlen(prefix)) ? name :
						       text + strlen(prefix);
}

static void list_file(struct model *model, uint32_t process, uint32_t number)
{
	const struct tree_file *file =
		&model->recording->processes[process].files[number];
	struct exceptions *exceptions = model->exceptions;
	uint64_t limit = process_count_limit(
		&model->recording->processes[process]);
	uint64_t bad = 0, bad_offset = 0;
	struct shim_throw_node node;
	const char *type;
	uint32_t i;

	for (i = 0; i < file->throw_count; i++) {
		memcpy(&node, file->data + file->throws[i], sizeof(node));
		if (node.count == 0)
			continue;
		if (node.count > limit) {
			model_blame(&bad, &bad_offset, file->throws[i]);
			continue;
		}
		type = calltree_type(file, node.type);
		GROW(exceptions->parts, exceptions->part_count,
		     exceptions->part_room);
		exceptions
			->parts[exceptions->part_count++] = (struct throw_part){
			.process = process,
			.file = number,
			.node = node.node,
			.catcher_node = node.catcher,
			.type = names_add(&exceptions->types, type ? type : ""),
			.path = NONE,
			.catcher = NONE,
			.is_throw = node.catcher == 0,
			.count = node.count,
		};
	}
	model_count_bad(model, file->name, bad, bad_offset);
}

void exceptions_list(struct model *model, uint32_t number)
{
	const struct process *process = &model->recording->processes[number];
	uint32_t i;

	if (!model->exceptions && !model->recording->has_traced_calls &&
	    process_has_profile(process, "exceptions"))
		model->exceptions = allocate(1, sizeof(*model->exceptions));
	for (i = 0; model->exceptions && i < process->file_count; i++)
		list_file(model, number, i);
}

/* The first part of that file, or of a later one: parts are sorted by file. */
static uint32_t find_parts(const struct exceptions *exceptions,
			   uint32_t process, uint32_t file)
{
	const struct throw_part *parts = exceptions->parts;

	return FIRST_NOT(
		i, exceptions->part_count,
		parts[i].process < process ||
			(parts[i].process == process && parts[i].file < file));
}

void exceptions_place(struct model *model, uint32_t process, uint32_t number)
{
	const struct tree_file *file =
		&model->recording->processes[process].files[number];
	struct exceptions *exceptions = model->exceptions;
	uint32_t i, end;

	if (!exceptions)
		return;
	end = find_parts(exceptions, process, number + 1);
	for (i = find_parts(exceptions, process, number); i < end; i++) {
		struct throw_part *part = &exceptions->parts[i];

		part->path = calltree_find_path(file, part->node);
		part->catcher = calltree_find_path(file, part->catcher_node);
	}
}

void exceptions_move(struct model *model, const uint32_t *own,
		     const uint32_t *numbers)
{
	struct exceptions *exceptions = model->exceptions;
	uint32_t i, kept = 0;

	for (i = 0; exceptions && i < exceptions->part_count; i++) {
		struct throw_part part = exceptions->parts[i];

		if (part.path != NONE && own[part.path] == NONE)
			continue;
		if (part.path != NONE)
			part.path = own[part.path];
		if (part.catcher != NONE)
			part.catcher = numbers[part.catcher];
		exceptions->parts[kept++] = part;
	}
	if (exceptions)
		exceptions->part_count = kept;
}

/* --- adding up --- */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Throws come before their catches. */
static int compare_parts(const void *left, const void *right)
{
	const struct throw_part *a = left, *b = right;

	if (a->type != b->type)
		return compare(a->type, b->type);
	if (a->path != b->path)
		return compare(a->path, b->path);
	if (a->is_throw != b->is_throw)
		return a->is_throw ? -1 : 1;
	return compare(a->catcher, b->catcher);
}

static void merge_parts(struct exceptions *exceptions)
{
	struct throw_part *parts = exceptions->parts;
	uint32_t i, n = 0;

	if (exceptions->part_count)
		qsort(parts, exceptions->part_count, sizeof(*parts),
		      compare_parts);
	for (i = 0; i < exceptions->part_count; i++) {
		if (n > 0 && !compare_parts(&parts[n - 1], &parts[i]))
			parts[n - 1].count += parts[i].count;
		else
			parts[n++] = parts[i];
	}
	exceptions->part_count = n;
}

static void add_thrown_part(struct thrown *thrown,
			    const struct throw_part *part)
{
	*(part->is_throw ? &thrown->throws : &thrown->catches) += part->count;
}

static void find_throwers(struct exceptions *exceptions)
{
	struct thrown *thrower = NULL;
	uint32_t i;

	exceptions->throwers = allocate(exceptions->part_count,
					sizeof(*thrower));
	for (i = 0; i < exceptions->part_count; i++) {
		const struct throw_part *part = &exceptions->parts[i];

		if (!thrower || thrower->type != part->type ||
		    thrower->path != part->path) {
			thrower = &exceptions->throwers
					   [exceptions->thrower_count++];
			*thrower = (struct thrown){ .type = part->type,
						    .path = part->path,
						    .first = i };
		}
		add_thrown_part(thrower, part);
		thrower->count++;
		*(part->is_throw ? &exceptions->throws :
				   &exceptions->catches) += part->count;
	}
}

static int compare_thrown(const void *left, const void *right)
{
	const struct thrown *a = left, *b = right;

	if (a->throws != b->throws)
		return compare(b->throws, a->throws);
	if (a->catches != b->catches)
		return compare(b->catches, a->catches);
	return a->type != b->type ? compare(a->type, b->type) :
				    compare(a->path, b->path);
}

static int compare_by_type(const void *left, const void *right)
{
	const struct thrown *a = left, *b = right;

	return a->type != b->type ? compare(a->type, b->type) :
				    compare_thrown(left, right);
}

static int compare_catchers(const void *left, const void *right)
{
	const struct throw_part *a = left, *b = right;

	if (a->is_throw != b->is_throw)
		return a->is_throw ? -1 : 1;
	return a->count != b->count ? compare(b->count, a->count) :
				      compare(a->catcher, b->catcher);
}

static void find_types(struct exceptions *exceptions)
{
	struct thrown *type = NULL, *thrower = exceptions->throwers;
	uint32_t i;

	exceptions->of_types = allocate(exceptions->types.count, sizeof(*type));
	if (exceptions->thrower_count)
		qsort(thrower, exceptions->thrower_count, sizeof(*thrower),
		      compare_by_type);
	for (i = 0; i < exceptions->thrower_count; i++, thrower++) {
		if (!type || type->type != thrower->type) {
			type = &exceptions->of_types[exceptions->type_count++];
			*type = (struct thrown){ .type = thrower->type,
						 .first = i };
		}
		type->throws += thrower->throws;
		type->catches += thrower->catches;
		type->count++;
		qsort(&exceptions->parts[thrower->first], thrower->count,
		      sizeof(struct throw_part), compare_catchers);
	}
	if (exceptions->type_count)
		qsort(exceptions->of_types, exceptions->type_count,
		      sizeof(*type), compare_thrown);
}

void exceptions_measure(struct model *model)
{
	if (!model->exceptions)
		return;
	merge_parts(model->exceptions);
	find_throwers(model->exceptions);
	find_types(model->exceptions);
}

/* --- the table --- */

const char *exceptions_type_name(const struct exceptions *exceptions,
				 uint32_t type, const struct options *options)
{
	const char *name = exceptions->types.text[type];

	return !*name			       ? NULL :
	       options->names == NAMES_MANGLED ? name :
						 type_name(name);
}
