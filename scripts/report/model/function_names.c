/*
 * Names the functions of a model: from the symbols of their objects.  If several names have
 * the same address, the calls to it decide.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/short_name.h"
#include "base/text.h"
#include "model/function_names.h"
#include "model/functions.h"
#include "model/known_functions.h"
#include "model/model.h"
#include "names/aliases.h"
#include "names/symbols.h"
#include "read/pchist.h"
#include "read/process.h"
#include "read/recording.h"

/*
 * From here on objects stay in place, so functions may point at them.  Returns
 * the functions' numbers, object by object.
 */
static uint32_t *sort_by_object(struct model *model)
{
	uint32_t *order = allocate(model->function_count, sizeof(*order));
	uint32_t *next = allocate(model->object_count, sizeof(*next));
	struct function *function;
	uint32_t i, at = 0;

	for (i = 0; i < model->function_count; i++) {
		function = &model->functions[i];
		if (function->object_number == NONE)
			continue;
		function->object = &model->objects[function->object_number];
		model->objects[function->object_number].functions++;
	}
	for (i = 0; i < model->object_count; i++) {
		next[i] = at;
		at += model->objects[i].functions;
	}
	for (i = 0; i < model->function_count; i++)
		if (model->functions[i].object_number != NONE)
			order[next[model->functions[i].object_number]++] = i;
	free(next);
	return order;
}

static int compare_symbols(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

/* Names a group "parse[kind=NUMBER]"; it is a function of its own. */
static void name_group(struct function *function)
{
	if (!function->group)
		return;
	function->name = keep_format("%s[%s]", function->name, function->group);
	function->short_name = keep_format("%s[%s]", function->short_name,
					   function->group);
	function->mangled = keep_format("%s[%s]", function->mangled,
					function->group);
}

/* By address. */
static const char *const no_code[] = {
	[SHIM_SAMPLE_UNKNOWN] = "[unknown code]",
	[SHIM_SAMPLE_CUT] = "[callers that could not be found]",
	[PCHIST_OUTSIDE] = "[code without a histogram]",
};

static void name_plainly(struct function *function, const struct symbol *symbol)
{
	uint64_t address = function->address;

	if (function->is_inlined)
		return;
	if (symbol && symbol->name) {
		function->mangled = symbol->name;
		function->name = symbol->source_name;
		function->is_named = true;
		function->is_new = !strncmp(symbol->name, "_Znw", 4) ||
				   !strncmp(symbol->name, "_Zna", 4);
		return;
	}
	if (!function->object)
		address &= SHIM_NODE_ADDRESS;
	if (!function->object && address < sizeof(no_code) / sizeof(*no_code) &&
	    no_code[address]) {
		function->name = no_code[address];
		function->mangled = function->name;
		return;
	}
	function->name = keep_format("0x%" PRIx64 " [%s]", address,
				     object_name(function));
	function->mangled = function->name;
}

/* (A name that is not mangled contains no types.) */
static void shorten_name(struct function *function)
{
	function->short_name = strcmp(function->name, function->mangled) ?
				       short_name(function->name) :
				       function->name;
}

static void name_function(struct function *function,
			  const struct symbol *symbol)
{
	name_plainly(function, symbol);
	shorten_name(function);
	name_group(function);
}

/* Functions with several names, object by object. */
struct doubts {
	uint32_t *functions;
	uint32_t count, room;
	bool *by_site; /* by object: debug information is searched, too */
};

/* @order: the numbers of all functions of @object. */
static void name_object(struct model *model, struct object *object,
			const uint32_t *order, struct doubts *doubts)
{
	struct symbol *symbols = allocate(object->functions, sizeof(*symbols));
	struct symbol key = { 0 };
	struct symbol *found;
	uint32_t i;

	for (i = 0; i < object->functions; i++)
		symbols[i].address = model->functions[order[i]].address;
	qsort(symbols, object->functions, sizeof(*symbols), compare_symbols);
	known_functions_find_symbols(object, symbols, object->functions);
	for (i = 0; i < object->functions; i++) {
		key.address = model->functions[order[i]].address;
		found = bsearch(&key, symbols, object->functions, sizeof(key),
				compare_symbols);
		name_function(&model->functions[order[i]], found);
		if (!found || !found->has_others)
			continue;
		GROW(doubts->functions, doubts->count, doubts->room);
		doubts->functions[doubts->count++] = order[i];
		doubts->by_site[object - model->objects] |= found->is_in_doubt;
	}
	free(symbols);
}

/* The limit of debug information searched for one name. */
#define CALL_SITE_STEPS 3000000

/* A program none of whose functions is in the recording may have called those that are.  It
 * has one image; a damaged recording may have thousands of them.  @keys: of the objects that
 * have been read; many processes may run one program. */
static void find_called_by_program(const struct process *process,
				   struct names *keys, struct names *called)
{
	const char *program = process_string(process, "program");
	struct object object;
	uint32_t i;

	for (i = 0; program && i < process->image_count; i++) {
		const struct image *image = &process->images[i];

		if (image->object != NONE || strcmp(image->path, program))
			continue;
		object = (struct object){
			.path = image->path,
			.key = image_key(image),
			.build_id = image->build_id,
			.build_id_size = image->build_id_size,
		};
		if (names_find(keys, object.key) != NONE)
			return;
		names_add(keys, object.key);
		symbols_called_by_table(&object, called);
		return;
	}
}

/* Names in calls of other objects, which are those that a library exports. */
static void find_called_by_tables(struct model *model, struct names *called)
{
	const struct recording *recording = model->recording;
	struct names keys = { 0 };
	uint32_t i;

	for (i = 0; i < model->object_count; i++) {
		names_add(&keys, model->objects[i].key);
		symbols_called_by_table(&model->objects[i], called);
	}
	for (i = 0; i < recording->process_count; i++)
		find_called_by_program(&recording->processes[i], &keys, called);
	names_free(&keys);
}

static void find_called_by_sites(struct model *model,
				 const struct doubts *doubts,
				 struct names *called)
{
	uint64_t steps = CALL_SITE_STEPS;
	uint32_t i;

	for (i = 0; i < model->object_count; i++)
		if (doubts->by_site[i])
			symbols_called_by_sites(&model->objects[i], called,
						&steps);
}

/* @numbers: @count functions of @object.  Moves those that keep their doubts to the front,
 * and returns their count. */
static uint32_t settle_object(struct model *model, struct object *object,
			      uint32_t *numbers, uint32_t count,
			      const struct names *called)
{
	struct symbol *symbols = allocate(count, sizeof(*symbols));
	struct symbol *found;
	uint32_t i, kept = 0;

	for (i = 0; i < count; i++)
		symbols[i] = (struct symbol){
			.address = model->functions[numbers[i]].address,
			.has_others = true,
		};
	qsort(symbols, count, sizeof(*symbols), compare_symbols);
	aliases_choose(object, symbols, count, called);
	for (i = 0; i < count; i++) {
		struct function *function = &model->functions[numbers[i]];
		const struct symbol key = { .address = function->address };

		found = bsearch(&key, symbols, count, sizeof(key),
				compare_symbols);
		if (found->name)
			name_function(function, found);
		else
			numbers[kept++] = numbers[i];
	}
	free(symbols);
	return kept;
}

static void settle_all(struct model *model, struct doubts *doubts,
		       const struct names *called)
{
	uint32_t *numbers = doubts->functions;
	struct object *object;
	uint32_t i, n, rest, kept = 0;

	for (i = 0; i < doubts->count; i += n) {
		object = model->functions[numbers[i]].object;
		for (n = 1; i + n < doubts->count; n++)
			if (model->functions[numbers[i + n]].object != object)
				break;
		rest = settle_object(model, object, numbers + i, n, called);
		memmove(numbers + kept, numbers + i, rest * sizeof(*numbers));
		kept += rest;
	}
	doubts->count = kept;
}

/* Lets call sites decide between several names. */
static void settle_names(struct model *model, struct doubts *doubts)
{
	struct names called = { 0 };

	find_called_by_tables(model, &called);
	settle_all(model, doubts, &called);
	if (doubts->count > 0) {
		find_called_by_sites(model, doubts, &called);
		settle_all(model, doubts, &called);
	}
	names_free(&called);
}

void function_names_find(struct model *model)
{
	struct doubts doubts = {
		.by_site = allocate(model->object_count, sizeof(bool)),
	};
	uint32_t *order = sort_by_object(model);
	uint32_t i, at = 0;

	for (i = 0; i < model->object_count; i++) {
		progress("finding names", i, model->object_count);
		name_object(model, &model->objects[i], order + at, &doubts);
		at += model->objects[i].functions;
	}
	free(order);
	if (doubts.count)
		settle_names(model, &doubts);
	free(doubts.functions);
	free(doubts.by_site);
	for (i = 0; i < model->function_count; i++)
		if (!model->functions[i].name)
			name_function(&model->functions[i], NULL);
}
