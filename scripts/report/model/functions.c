/*
 * Turns the program's addresses into functions.  The same address in the same
 * file is the same function, whichever process loaded it.  In one file,
 * functions with equal names are one function only if their source location is
 * the same: an inline function has a copy in every unit that uses it, but two
 * static functions may share a name by chance.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/short_name.h"
#include "base/text.h"
#include "model/frames.h"
#include "model/function_names.h"
#include "model/functions.h"
#include "model/known_functions.h"
#include "model/model.h"
#include "model/options.h"
#include "names/symbols.h"
#include "read/images.h"
#include "read/pchist.h"
#include "read/recording.h"

struct search {
	struct model *model;
	/* by image_key(), with the same numbers */
	struct names objects;
	struct names grouped;	      /* "object/address/group" */
	struct map grouped_functions; /* number in @grouped, to the function */
	struct names inlined;	      /* "object/name/file/line" */
	struct map inlined_functions; /* by their number there */
	struct names made;  /* "name/file/line/file/line" of made code */
	struct map unknown; /* by address: functions in no object */
	/* by object: address in the file, to the function */
	struct map *maps;
	uint32_t map_room;
	struct frame_site *frames;
	uint32_t frame_count, frame_room;
	uint32_t object_room;
	uint32_t function_room;
};

const char *image_key(const struct image *image)
{
	char id[2 * 64 + 1] = ""; /* read_image() accepts at most this length */
	uint32_t i;

	for (i = 0; i < image->build_id_size; i++)
		sprintf(id + 2 * i, "%02x", image->build_id[i]);
	return keep_format("%s/%s", id, image->path);
}

static uint32_t find_object(struct search *search, struct image *image)
{
	struct model *model = search->model;
	const char *key;
	uint32_t object;

	if (image->object != NONE)
		return image->object;
	key = image_key(image);
	object = names_add(&search->objects, key);
	if (object < model->object_count)
		return image->object = object;
	GROW(model->objects, model->object_count, search->object_room);
	model->objects[model->object_count++] = (struct object){
		.path = image->path,
		.key = key,
		.build_id = image->build_id,
		.build_id_size = image->build_id_size,
	};
	return image->object = object;
}

static uint32_t add_function(struct search *search, struct map *map,
			     uint64_t address, uint32_t object)
{
	struct model *model = search->model;
	uint32_t function = map_add(map, address, model->function_count);

	if (function == model->function_count) {
		GROW(model->functions, model->function_count,
		     search->function_room);
		model->functions[model->function_count++] = (struct function){
			.address = address,
			.object_number = object,
		};
	}
	return function;
}

/* Adds one group of a function's calls. */
static uint32_t add_grouped(struct search *search, uint64_t address,
			    uint32_t object, const char *group)
{
	struct model *model = search->model;
	struct map *map = &search->grouped_functions;
	uint32_t key = names_add(
		&search->grouped,
		keep_format("%x/%" PRIx64 "/%s", object, address, group));
	uint32_t function = add_function(search, map, key, object);

	model->functions[function].address = address;
	model->functions[function].group = group;
	return function;
}

static uint32_t add_in_object(struct search *search, uint32_t object,
			      uint64_t address)
{
	while (search->map_room <= object) {
		search->maps = grow(search->maps, search->map_room + 1,
				    sizeof(*search->maps));
		search->maps[search->map_room++] = (struct map){ 0 };
	}
	return add_function(search, &search->maps[object], address, object);
}

/* Adds a function that has no code of its own, and so no address. */
static uint32_t add_inlined(struct search *search, uint32_t object,
			    const struct frame_symbol *symbol)
{
	struct model *model = search->model;
	uint32_t key = names_add(
		&search->inlined,
		keep_format("%x/%s/%s/%d", object, symbol->name,
			    symbol->file ? symbol->file : "", symbol->line));
	uint32_t before = model->function_count;
	/* (There is no symbol.) */
	uint32_t number = add_function(search, &search->inlined_functions, key,
				       object);
	struct function *function = &model->functions[number];

	if (number < before)
		return number;
	function->address = FRAME_ADDRESS | number;
	function->mangled = symbol->name;
	function->name = demangle(symbol->name);
	function->file = symbol->file;
	function->line = symbol->line;
	function->line_looked_up = true;
	function->is_named = function->is_inlined = true;
	return number;
}

/* Adds code of an object in which functions cannot be distinguished. */
static uint32_t add_untold(struct search *search, uint32_t object)
{
	struct frame_symbol symbol = {
		.name = keep_format(
			"[%s]", base_name(search->model->objects[object].path))
	};

	return add_inlined(search, object, &symbol);
}

/* Adds code that the program made while it ran. */
static uint32_t add_made(struct search *search, uint32_t made)
{
	const struct frame_made *code = &search->model->frames.made[made];
	struct frame_symbol symbol = { .name = code->name,
				       .file = code->begin.file,
				       .line = code->begin.line };
	uint32_t number = add_inlined(search, NONE, &symbol);
	struct function *function = &search->model->functions[number];

	function->name = function->short_name = symbol.name;
	function->is_python = code->is_interpreted;
	return number;
}

static uint32_t add_of_frame(void *context, uint32_t object,
			     const struct frame_symbol *symbol)
{
	if (object == NONE && (symbol->start & FRAME_ADDRESS))
		return add_made(context, (uint32_t)symbol->start);
	if (object == NONE)
		return add_function(
			context, &((struct search *)context)->unknown,
			symbol->start <= PCHIST_OUTSIDE ? symbol->start :
							  SHIM_SAMPLE_UNKNOWN,
			NONE);
	if (!symbol)
		return add_untold(context, object);
	return symbol->start ? add_in_object(context, object, symbol->start) :
			       add_inlined(context, object, symbol);
}

static void add_frame(struct search *search, uint32_t site, uint32_t object,
		      uint64_t address)
{
	GROW(search->frames, search->frame_count, search->frame_room);
	search->frames[search->frame_count++] = (struct frame_site){ address,
								     object,
								     site };
}

static uint32_t add_outside(struct search *search, const struct site *site)
{
	uint64_t address = (uint64_t)site->generation << 48 | site->address;

	return site->group ?
		       add_grouped(search, address, NONE, site->group) :
		       add_function(search, &search->unknown, address, NONE);
}

static struct frame_place place_of(const struct jit_map *map,
				   const struct jit_code *code,
				   uint64_t address)
{
	struct jit_line line;

	return jit_map_line(map, code, address, &line) ?
		       (struct frame_place){ line.file, line.line } :
		       (struct frame_place){ NULL, 0 };
}

/* The address that the code at @address gets, by its number; code of the same name and
 * line has the same number.  0: no JIT has described the code. */
static uint64_t find_made(struct search *search, const struct jit_map *map,
			  uint64_t address)
{
	struct frame_chains *frames = &search->model->frames;
	const struct jit_code *code = jit_map_find(map, address);
	struct frame_made made;
	uint32_t number;

	if (!code)
		return 0;
	made = (struct frame_made){
		.name = code->name,
		.begin = place_of(map, code, code->begin),
		.place = place_of(map, code, address),
		.is_interpreted = code->file != NULL,
	};
	number = names_add(&search->made,
			   keep_format("%s/%s/%d/%s/%d", made.name,
				       made.begin.file ? made.begin.file : "",
				       made.begin.line,
				       made.place.file ? made.place.file : "",
				       made.place.line));
	if (number == frames->made_count) {
		GROW(frames->made, frames->made_count, frames->made_room);
		frames->made[frames->made_count++] = made;
	}
	return FRAME_ADDRESS | number;
}

static void find_site(struct search *search, uint32_t number)
{
	struct recording *recording = search->model->recording;
	struct site *site = &recording->sites[number];
	struct image *image = process_image(
		&recording->processes[site->process], site->address,
		site->generation);
	uint32_t object = image ? find_object(search, image) : NONE;
	uint64_t address = site->address - (image ? image->bias : 0);
	uint64_t made = 0;

	if (site->is_frame && !image)
		made = find_made(search,
				 &recording->processes[site->process].jit_map,
				 site->address);
	if (made)
		address = made;
	if (site->is_frame)
		add_frame(search, number, object, address);
	else if (!image)
		site->function = add_outside(search, site);
	else if (site->group)
		site->function = add_grouped(search, address, object,
					     site->group);
	else
		site->function = add_in_object(search, object, address);
}

static void find_sites(struct search *search)
{
	struct recording *recording = search->model->recording;
	uint32_t i;

	for (i = 0; i < recording->site_count; i++)
		find_site(search, i);
	frames_find_chains(search->model, search->frames, search->frame_count,
			   add_of_frame, search);
	free(search->frames);
	map_free(&search->unknown);
	for (i = 0; i < search->map_room; i++)
		map_free(&search->maps[i]);
	free(search->maps);
}

/* Compares two functions with the same mangled name. */
static bool is_same_function(struct function *a, struct function *b)
{
	if (!a->is_named || !b->is_named || !a->object || !b->object ||
	    (a->object != b->object &&
	     strcmp(a->object->path, b->object->path)))
		return false;
	function_line(a);
	function_line(b);
	return a->file && b->file && a->line == b->line &&
	       !strcmp(a->file, b->file);
}

/* Samples also hit the code that leads from a call site to our hook. */
static bool is_hook(const struct function *function)
{
	return !strcmp(function->mangled, "__cyg_profile_func_enter") ||
	       !strcmp(function->mangled, "__cyg_profile_func_exit");
}

static void mark_hooks(struct model *model)
{
	const struct recording *recording = model->recording;
	uint32_t i;

	for (i = 0; i < recording->site_count; i++)
		if (recording->sites[i].has_hooks)
			model->functions[recording->sites[i].function]
				.has_hooks = true;
	for (i = 0; i < model->function_count; i++)
		model->functions[i].is_hook = is_hook(&model->functions[i]);
}

/* Equal functions get the number of the first of them. */
static void merge_functions(struct model *model)
{
	struct function *functions = model->functions;
	uint32_t *new = allocate(model->function_count, sizeof(*new));
	uint32_t i, first, same, n = 0;
	struct recording *recording = model->recording;
	struct names names = { 0 };
	uint32_t *by_name = allocate(model->function_count, sizeof(*by_name));
	uint32_t *next = allocate(model->function_count, sizeof(*next));
	uint32_t tries;

	for (i = 0; i < model->function_count; i++) {
		first = names_add(&names, functions[i].mangled);
		same = by_name[first] - 1;
		/* Beyond a hundred functions with one name, they stay
		 * separate. */
		for (tries = 0; same != NONE && tries < 100; tries++) {
			if (is_same_function(&functions[same], &functions[i]))
				break;
			same = next[same] - 1;
		}
		if (same != NONE && tries < 100) {
			new[i] = same;
			continue;
		}
		functions[n] = functions[i];
		next[n] = by_name[first];
		by_name[first] = n + 1;
		new[i] = n++;
	}
	for (i = 0; i < recording->site_count; i++)
		if (!recording->sites[i].is_frame)
			recording->sites[i].function =
				new[recording->sites[i].function];
	frames_renumber(&model->frames, new);
	mark_hooks(model);
	model->function_count = n;
	names_free(&names);
	free(by_name);
	free(next);
	free(new);
}

/* Removes the objects of an earlier model. */
static void forget_objects(struct recording *recording)
{
	uint32_t i, n;

	for (i = 0; i < recording->process_count; i++)
		for (n = 0; n < recording->processes[i].image_count; n++)
			recording->processes[i].images[n].object =
				recording->processes[i].images[n].data_object =
					NONE;
}

void model_find_functions(struct model *model)
{
	struct search search = { .model = model };

	forget_objects(model->recording);
	find_sites(&search);
	names_free(&search.objects);
	map_free(&search.grouped_functions);
	names_free(&search.grouped);
	map_free(&search.inlined_functions);
	names_free(&search.inlined);
	names_free(&search.made);
	function_names_find(model);
	known_functions_keep(model);
	merge_functions(model);
}

const char *linker_name(const struct function *function)
{
	size_t length = strlen(function->mangled);

	if (function->group)
		length -= strlen(function->group) + strlen("[]");
	return keep_text(function->mangled, length);
}

const char *object_name(const struct function *function)
{
	return function->object	    ? base_name(function->object->path) :
	       function->is_python  ? "Python" :
	       function->is_inlined ? "made at run time" :
				      "unknown";
}

void function_line(struct function *function)
{
	struct known_function *known;

	if (function->line_looked_up)
		return;
	function->line_looked_up = true;
	if (!function->is_named)
		return;
	known = known_functions_find(function->object, function->address);
	if (known && known->has_line) {
		function->file = known->file;
		function->line = known->line;
		return;
	}
	if (!symbols_line(function->object, function->address, &function->file,
			  &function->line))
		function->file = NULL;
	if (known)
		known_functions_add_line(known, function->file, function->line);
}

const char *shown_name(const struct function *function,
		       const struct options *options)
{
	switch (options->names) {
	case NAMES_SHORT: return function->short_name;
	case NAMES_MANGLED: return function->mangled;
	default: return function->name;
	}
}

const char *shown_linker_name(const char *name, const struct options *options)
{
	switch (options->names) {
	case NAMES_SHORT: return short_name(demangle(name));
	case NAMES_MANGLED: return name;
	default: return demangle(name);
	}
}
