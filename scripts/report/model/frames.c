/*
 * Finds the functions of sampled frames.  Each object is asked once, for all of
 * its frames; frames of several processes at the same place of a file share a
 * chain.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "model/frames.h"
#include "model/model.h"
#include "names/symbols.h"
#include "read/recording.h"

/* The number of callers among which a function is searched: it can be inlined
 * only into these. */
#define CALLERS_MAX 64

struct finding {
	struct model *model;
	uint32_t (*add)(void *context, uint32_t object,
			const struct frame_symbol *symbol);
	void *context;
	uint32_t object;
	uint32_t first; /* chain of the object's first address */
	uint32_t chain; /* chain that is being filled */
};

static int compare_frames(const void *left, const void *right)
{
	const struct frame_site *a = left, *b = right;

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->site < b->site ? -1 : a->site > b->site;
}

static void add_function(struct finding *finding,
			 const struct frame_symbol *symbol)
{
	struct frame_chains *chains = &finding->model->frames;
	uint32_t function = finding->add(finding->context, finding->object,
					 symbol);

	GROW(chains->functions, chains->function_count, chains->function_room);
	chains->functions[chains->function_count++] = function;
}

/* Completes the chains before @chain. */
static void end_chains(struct finding *finding, uint32_t chain)
{
	struct frame_chains *chains = &finding->model->frames;
	uint32_t begin;

	for (; finding->chain < chain; finding->chain++) {
		begin = chains->count ? chains->ends[chains->count - 1] : 0;
		if (begin == chains->function_count)
			add_function(finding, NULL);
		GROW(chains->ends, chains->count, chains->room);
		chains->ends[chains->count++] = chains->function_count;
	}
}

/* (They come in the order of the addresses; others are not trusted.) */
static void take_frame(void *context, uint32_t number, uint32_t id,
		       const struct frame_symbol *symbol)
{
	struct finding *finding = context;

	(void)id;
	if (finding->first + number < finding->chain)
		return;
	end_chains(finding, finding->first + number);
	add_function(finding, symbol);
}

/* No object has them. */
static void take_outside(struct finding *finding, const uint64_t *addresses,
			 uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		take_frame(finding, i, 0,
			   &(struct frame_symbol){ .start = addresses[i] });
}

static void add_address(struct frame_chains *chains, uint32_t number,
			const struct frame_site *frame)
{
	GROW(chains->addresses, number, chains->address_room);
	chains->addresses[number] = (struct frame_address){ frame->address,
							    frame->object };
	GROW(chains->is_hook_site, number, chains->hook_site_room);
	chains->is_hook_site[number] = false;
}

/* Finds the functions of all frames of one object, which begin at @frames;
 * returns their number. */
static uint32_t find_in_object(struct finding *finding,
			       const struct frame_site *frames, uint32_t count)
{
	struct model *model = finding->model;
	uint64_t *addresses = allocate(count, sizeof(*addresses));
	uint32_t i, kept = 0;

	finding->object = frames->object;
	finding->first = finding->chain = model->frames.count;
	for (i = 0; i < count && frames[i].object == frames->object; i++) {
		if (!kept || addresses[kept - 1] != frames[i].address) {
			addresses[kept++] = frames[i].address;
			add_address(&model->frames, finding->first + kept - 1,
				    &frames[i]);
		}
		model->recording->sites[frames[i].site].function =
			finding->first + kept - 1;
	}
	if (frames->object != NONE) {
		symbols_frames(&model->objects[frames->object], addresses, kept,
			       take_frame, finding);
		symbols_hook_sites(&model->objects[frames->object], addresses,
				   kept,
				   model->frames.is_hook_site + finding->first);
	} else
		take_outside(finding, addresses, kept);
	end_chains(finding, finding->first + kept);
	free(addresses);
	return i;
}

void frames_find_chains(struct model *model, struct frame_site *frames,
			uint32_t count,
			uint32_t (*add)(void *context, uint32_t object,
					const struct frame_symbol *symbol),
			void *context)
{
	struct finding finding = { .model = model,
				   .add = add,
				   .context = context };
	uint32_t i;

	if (count)
		qsort(frames, count, sizeof(*frames), compare_frames);
	for (i = 0; i < count;) {
		progress("finding inlined functions", i, count);
		i += find_in_object(&finding, frames + i, count - i);
	}
}

uint32_t frames_begin(const struct frame_chains *chains, uint32_t number)
{
	return number ? chains->ends[number - 1] : 0;
}

const uint32_t *frames_chain(const struct frame_chains *chains, uint32_t number,
			     uint32_t *count)
{
	uint32_t begin = frames_begin(chains, number);

	*count = chains->ends[number] - begin;
	return chains->functions + begin;
}

/* --- places --- */

struct placing {
	struct frame_chains *chains;
	uint32_t first; /* chain of the first address that was asked for */
	uint32_t chain, done; /* the last chain, and how many places it has */
};

/* (What comes for a chain beyond its end is not trusted.) */
static void take_place(void *context, uint32_t number, const char *file,
		       int line)
{
	struct placing *placing = context;
	struct frame_chains *chains = placing->chains;
	uint32_t chain = placing->first + number, at;

	if (chain != placing->chain)
		placing->done = 0;
	placing->chain = chain;
	at = frames_begin(chains, chain) + placing->done;
	if (at >= chains->ends[chain])
		return;
	placing->done++;
	chains->places[at] = (struct frame_place){ file, line };
}

static void place_made(struct frame_chains *chains, uint32_t chain)
{
	uint64_t made = chains->addresses[chain].address & ~FRAME_ADDRESS;

	if ((chains->addresses[chain].address & FRAME_ADDRESS) &&
	    made < chains->made_count)
		chains->places[frames_begin(chains, chain)] =
			chains->made[made].place;
}

/* Asks for the chains from @first on that are of the same object; returns the number of
 * the next chain. */
static uint32_t place_object(struct model *model, uint32_t first)
{
	struct frame_chains *chains = &model->frames;
	struct placing placing = { .chains = chains,
				   .first = first,
				   .chain = NONE };
	uint32_t object = chains->addresses[first].object, end = first, i;
	uint64_t *addresses;

	while (end < chains->count && chains->addresses[end].object == object)
		end++;
	if (object == NONE) {
		for (i = first; i < end; i++)
			place_made(chains, i);
		return end;
	}
	addresses = allocate(end - first, sizeof(*addresses));
	for (i = first; i < end; i++)
		addresses[i - first] = chains->addresses[i].address;
	symbols_places(&model->objects[object], addresses, end - first,
		       take_place, &placing);
	free(addresses);
	return end;
}

/* Numbers equal keys equally. */
static uint32_t number_of(struct map *map, uint64_t high, uint32_t low)
{
	return map_add(map, high << 32 | low, (uint32_t)map->count);
}

/* (Equal names of files have one address within an object.) */
static void find_equal(struct frame_chains *chains)
{
	struct map files = { 0 }, lines = { 0 }, all = { 0 };
	uint32_t i, number;

	chains->first_equal = allocate(chains->function_count + 1,
				       sizeof(*chains->first_equal));
	for (i = 0; i < chains->function_count; i++) {
		const struct frame_place *place = &chains->places[i];

		number = map_add(&files, (uintptr_t)place->file,
				 (uint32_t)files.count);
		number = number_of(&lines, number, (uint32_t)place->line);
		chains->first_equal[i] = map_add(
			&all, (uint64_t)number << 32 | chains->functions[i], i);
	}
	map_free(&files);
	map_free(&lines);
	map_free(&all);
}

void frames_find_places(struct model *model)
{
	struct frame_chains *chains = &model->frames;
	uint32_t i;

	if (chains->places)
		return;
	chains->places = allocate(chains->function_count + 1,
				  sizeof(*chains->places));
	for (i = 0; i < chains->count;) {
		progress("finding lines", i, chains->count);
		i = place_object(model, i);
	}
	find_equal(chains);
}

void frames_renumber(struct frame_chains *chains, const uint32_t *numbers)
{
	uint32_t i;

	for (i = 0; i < chains->function_count; i++)
		chains->functions[i] = numbers[chains->functions[i]];
}

static uint32_t find_last(const uint32_t *functions, uint32_t count,
			  uint32_t function)
{
	while (count > 0 && functions[count - 1] != function)
		count--;
	return count;
}

uint32_t frames_cut(const struct model *model, uint32_t path,
		    const uint32_t *functions, uint32_t count)
{
	uint32_t callers, cut;

	for (callers = 0; callers < CALLERS_MAX; callers++) {
		if (model->paths[path].function == NONE)
			return 0;
		cut = find_last(functions, count, model->paths[path].function);
		if (cut)
			return cut;
		path = model->paths[path].parent;
	}
	return 0;
}
