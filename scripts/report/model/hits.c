/*
 * Adds up the samples of one function.  Every node of samples is an instruction; its chain
 * says which functions are there (frames.h), and where in each of them.  A sample counts
 * for the innermost function's line itself, and once for each line of the function on the
 * way up to the root.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "model/frames.h"
#include "model/hits.h"
#include "model/model.h"
#include "read/calltree.h"
#include "read/pchist.h"
#include "read/process.h"
#include "read/recording.h"

struct gathering {
	struct hits *hits;
	struct model *model;
	uint32_t function;
	struct names files;
	struct map rows;	 /* file << 32 | line, to the line */
	struct map instructions; /* chain, to the instruction */
	uint32_t *seen;		 /* by line: number of the last sample there */
	uint32_t seen_room;
	uint32_t number;
};

/* Samples of whole stacks, if there are any; otherwise those of the budget. */
static bool is_used(const struct model *model, const struct tree_file *file)
{
	return file->is_sampled == model->is_sampled;
}

static double samples_of(const struct tree_file *file,
			 const struct entry *entry)
{
	struct shim_sampled_node node;

	memcpy(&node, file->data + entry->offset, sizeof(node));
	/* (There cannot have been more.) */
	return node.samples <= UINT32_MAX * 64ull ? (double)node.samples : 0;
}

bool hits_are_there(const struct recording *recording)
{
	uint32_t i;

	for (i = 0; i < recording->site_count; i++)
		if (recording->sites[i].is_frame &&
		    recording->sites[i].address > PCHIST_OUTSIDE)
			return true;
	return false;
}

/* Calls @visit for every node with samples. */
static void visit(const struct model *model,
		  void (*take)(void *context, const struct tree_file *file,
			       const struct entry *entry, double samples),
		  void *context)
{
	const struct recording *recording = model->recording;
	const struct tree_file *file;
	uint32_t i, n, k;
	double samples;

	for (i = 0; i < recording->process_count; i++)
		for (n = 0; n < recording->processes[i].file_count; n++) {
			file = &recording->processes[i].files[n];
			if (!is_used(model, file))
				continue;
			for (k = 0; k < file->entry_count; k++) {
				if (!recording_is_frame(model->recording,
							&file->entries[k]))
					continue;
				samples = samples_of(file, &file->entries[k]);
				if (samples > 0)
					take(context, file, &file->entries[k],
					     samples);
			}
		}
}

static void add_sample(void *context, const struct tree_file *file,
		       const struct entry *entry, double samples)
{
	(void)file;
	(void)entry;
	*(double *)context += samples;
}

double hits_all(const struct model *model)
{
	double all = 0;

	visit(model, add_sample, &all);
	return all;
}

double hits_period_ns(const struct model *model)
{
	const struct recording *recording = model->recording;
	uint32_t i;

	if (model->is_sampled)
		return model->period_ns;
	for (i = 0; i < recording->process_count; i++)
		if (recording->processes[i].meta.sample_period_ns)
			return (double)recording->processes[i]
				.meta.sample_period_ns;
	return 0;
}

static uint32_t find_line(struct gathering *gathering,
			  const struct frame_place *place)
{
	struct hits *hits = gathering->hits;
	uint32_t file = names_add(&gathering->files,
				  place->file ? place->file : "");
	uint32_t line = map_add(&gathering->rows,
				(uint64_t)file << 32 | (uint32_t)place->line,
				hits->line_count);

	if (line < hits->line_count)
		return line;
	GROW(gathering->seen, hits->line_count, gathering->seen_room);
	gathering->seen[hits->line_count] = 0;
	GROW(hits->lines, hits->line_count, hits->line_room);
	hits->lines[hits->line_count] = (struct line_hit){
		.file = place->file, .line = place->line
	};
	return hits->line_count++;
}

static void add_instruction(struct gathering *gathering, uint32_t chain,
			    double samples)
{
	struct hits *hits = gathering->hits;
	const struct frame_address *at =
		&gathering->model->frames.addresses[chain];
	uint32_t i = map_add(&gathering->instructions, chain,
			     hits->instruction_count);

	hits->code += samples;
	if (i == hits->instruction_count) {
		GROW(hits->instructions, hits->instruction_count,
		     hits->instruction_room);
		hits->instructions[hits->instruction_count++] =
			(struct instruction_hit){ at->address, at->object, 0 };
	}
	hits->instructions[i].self += samples;
}

/* Adds a sample to the lines of the function in the chain; returns whether the function is
 * there. */
static bool add_chain(struct gathering *gathering, uint32_t chain,
		      double samples, bool is_own)
{
	const struct frame_chains *chains = &gathering->model->frames;
	uint32_t i, end = chains->ends[chain], line;
	bool found = false;

	for (i = frames_begin(chains, chain); i < end; i++) {
		if (chains->functions[i] != gathering->function)
			continue;
		found = true;
		line = find_line(gathering, &chains->places[i]);
		if (gathering->seen[line] != gathering->number)
			gathering->hits->lines[line].total += samples;
		gathering->seen[line] = gathering->number;
		if (!is_own || i + 1 < end)
			continue;
		gathering->hits->lines[line].self += samples;
		gathering->hits->self += samples;
	}
	return found;
}

static void gather(void *context, const struct tree_file *file,
		   const struct entry *entry, double samples)
{
	struct gathering *gathering = context;
	const struct recording *recording = gathering->model->recording;
	const struct frame_chains *chains = &gathering->model->frames;
	uint32_t chain = recording->sites[entry->site].function;
	const struct entry *at = entry;
	bool found = false;
	uint32_t steps;

	gathering->number++;
	if (chains->functions[frames_begin(chains, chain)] ==
	    gathering->function)
		add_instruction(gathering, chain, samples);
	/* (Parents can form a circle in a damaged file.) */
	for (steps = 0; steps < file->entry_count; steps++) {
		found |= add_chain(gathering,
				   recording->sites[at->site].function, samples,
				   at == entry);
		if (at->parent == NONE ||
		    !recording_is_frame(gathering->model->recording,
					&file->entries[at->parent]))
			break;
		at = &file->entries[at->parent];
	}
	if (found)
		gathering->hits->total += samples;
}

static int compare_lines(const void *left, const void *right)
{
	const struct line_hit *a = left, *b = right;

	if (a->self != b->self)
		return a->self < b->self ? 1 : -1;
	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	return (a->line > b->line) - (a->line < b->line);
}

static int compare_instructions(const void *left, const void *right)
{
	const struct instruction_hit *a = left, *b = right;

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	return (a->address > b->address) - (a->address < b->address);
}

void hits_find(struct hits *hits, struct model *model, uint32_t function)
{
	struct gathering gathering = { .hits = hits,
				       .model = model,
				       .function = function };

	*hits = (struct hits){ .lines = NULL };
	frames_find_places(model);
	visit(model, gather, &gathering);
	if (hits->line_count)
		qsort(hits->lines, hits->line_count, sizeof(*hits->lines),
		      compare_lines);
	if (hits->instruction_count)
		qsort(hits->instructions, hits->instruction_count,
		      sizeof(*hits->instructions), compare_instructions);
	names_free(&gathering.files);
	map_free(&gathering.rows);
	map_free(&gathering.instructions);
	free(gathering.seen);
}

void hits_free(struct hits *hits)
{
	free(hits->lines);
	free(hits->instructions);
}
