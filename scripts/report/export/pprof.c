/*
 * Exports a gzip'ed profile.proto for pprof.  Each call path becomes one sample
 * with the path's own value, so pprof's flat and cum equal our self and total.
 * The profile is encoded in pieces of one sample or function each, because
 * concatenated messages are one message; so only one piece is in memory a
 * second time, however many paths there are.
 *
 * Self times of paths may be negative (see shown_self()) and are written
 * unchanged: a correction would make the sums of flat or cum wrong.
 *
 * A group of calls (calltree:by=) becomes a function of its own, not a label.
 * A label belongs to a whole sample, but a group belongs to one frame: one path
 * may have several groups, even of one function that calls itself.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/gzip.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/text.h"
#include "export/format.h"
#include "model/bounds.h"
#include "model/functions.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/options.h"
#include "model/paths.h"
#include "model/totals.h"
#include "names/symbols.h"
#include "read/images.h"
#include "read/process.h"
#include "read/recording.h"
#include "profile.pb-c.h"

enum { LABEL_THREAD, LABEL_TID, LABEL_PID, LABELS };
enum { TYPE_COUNT, TYPE_TIME, CALL_TYPES };
enum { TYPE_BLOCKS, TYPE_BYTES, TYPE_LEFT_BLOCKS, TYPE_LEFT_BYTES, TYPES };

struct writing {
	struct model *model;
	const struct options *options;
	struct gzip *gzip;
	uint8_t *packed;
	size_t packed_room;
	struct names strings;
	uint32_t strings_written;
	size_t types; /* 1: counts without times; TYPES: memory */

	/* The current path as location ids.  The leaf comes first, so the array
	 * is filled from its end. */
	uint64_t *stack;
	uint32_t depth;
	Pprof__Label labels[LABELS];
	Pprof__Label *label[LABELS];
	size_t label_count;
	uint64_t count; /* not written yet */
	uint64_t memory[TYPES];
	double time; /* time of all paths so far */
	int64_t time_written;
	double negative_time; /* part of @time, in paths with negative times */
	uint64_t cut_calls;
	uint32_t paths_done;
};

static void write_piece(struct writing *writing, const Pprof__Profile *piece)
{
	size_t size = pprof__profile__get_packed_size(piece);

	if (size > writing->packed_room) {
		writing->packed_room = size * 2;
		writing->packed = grow(writing->packed, writing->packed_room,
				       1);
	}
	pprof__profile__pack(piece, writing->packed);
	gzip_write(writing->gzip, writing->packed, size);
}

/* The index of @text in the string table; 0 if @text is NULL. */
static int64_t string(struct writing *writing, const char *text)
{
	char *copy;

	if (!text)
		return 0;
	/* pprof's readers require UTF-8, and print the text as it is. */
	copy = (char *)keep_text(text, SIZE_MAX);
	make_harmless(copy);
	return names_add(&writing->strings, copy);
}

/* Writes the strings that were added since the last piece. */
static void put_strings(struct writing *writing)
{
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	uint32_t first = writing->strings_written;

	piece.string_table = (char **)writing->strings.text + first;
	piece.n_string_table = writing->strings.count - first;
	write_piece(writing, &piece);
	writing->strings_written = writing->strings.count;
}

static int64_t limited(uint64_t count)
{
	return count < INT64_MAX ? (int64_t)count : INT64_MAX;
}

/* A limit at which adding or subtracting two values cannot overflow. */
static int64_t rounded(double ns)
{
	return llround(fmin(fmax(ns, -0x1p61), 0x1p61));
}

/* --- what the numbers are --- */

static const char *time_name(const struct model *model)
{
	if (!model->is_sampled)
		return "time";
	return model->sample_mode == SHIM_SAMPLED_REAL ? "wall" : "cpu";
}

static int64_t start_ns(const struct recording *recording)
{
	uint64_t start, first = 0;
	uint32_t i;

	for (i = 0; i < recording->process_count; i++) {
		start = recording->processes[i].meta.start_real_ns;
		if (start && (!first || start < first))
			first = start;
	}
	return limited(first);
}

static void put_head(struct writing *writing)
{
	const struct model *model = writing->model;
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	Pprof__ValueType count = PPROF__VALUE_TYPE__INIT;
	Pprof__ValueType time = PPROF__VALUE_TYPE__INIT;
	Pprof__ValueType *types[CALL_TYPES] = { &count, &time };

	count.type = string(writing, counted_name(model));
	count.unit = string(writing, "count");
	if (writing->types > TYPE_TIME) {
		time.type = string(writing, time_name(model));
		time.unit = string(writing, "nanoseconds");
	}
	piece.sample_type = types;
	piece.n_sample_type = writing->types;
	piece.default_sample_type = writing->options->value == VALUE_CALLS ?
					    count.type :
					    time.type;
	piece.time_nanos = start_ns(model->recording);
	piece.duration_nanos = rounded(model->duration);
	if (model->is_sampled) {
		piece.period_type = &time;
		piece.period = rounded(model->period_ns);
	}
	write_piece(writing, &piece);
}

/* The names are those of Go's heap profiles, which pprof knows: "inuse" is the
 * memory that was not freed at the end. */
static void put_memory_head(struct writing *writing)
{
	static const char *const names[TYPES] = {
		"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"
	};
	static const int shown[] = { [VALUE_BYTES] = TYPE_BYTES,
				     [VALUE_ALLOCATIONS] = TYPE_BLOCKS,
				     [VALUE_LEAKED] = TYPE_LEFT_BYTES };
	const struct model *model = writing->model;
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	Pprof__ValueType type[TYPES], *types[TYPES], period;
	int i;

	pprof__value_type__init(&period);
	period.type = string(writing, "space");
	period.unit = string(writing, "bytes");
	for (i = 0; i < TYPES; i++) {
		pprof__value_type__init(&type[i]);
		type[i].type = string(writing, names[i]);
		type[i].unit = string(writing, i % 2 ? "bytes" : "count");
		types[i] = &type[i];
	}
	piece.sample_type = types;
	piece.n_sample_type = TYPES;
	piece.default_sample_type = string(
		writing, names[shown[writing->options->value]]);
	piece.time_nanos = start_ns(model->recording);
	piece.duration_nanos = rounded(model->duration);
	piece.period_type = &period;
	piece.period = model->memory_period ? limited(model->memory_period) : 1;
	write_piece(writing, &piece);
}

/* --- functions and their locations --- */

/* By object: one of its images, or NULL. */
static const struct image **find_images(const struct model *model)
{
	const struct image **images = allocate(model->object_count,
					       sizeof(*images));
	const struct process *process = model->recording->processes;
	const struct process *end = process + model->recording->process_count;
	uint32_t i, object;

	for (; process < end; process++)
		for (i = 0; i < process->image_count; i++) {
			object = process->images[i].object;
			if (object != NONE && !images[object])
				images[object] = &process->images[i];
		}
	return images;
}

static const char *hexadecimal(const unsigned char *bytes, uint32_t size)
{
	/* read_image() accepts at most this length. */
	char text[2 * 64 + 1] = "";
	uint32_t i;

	for (i = 0; i < size && i < 64; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	return keep_text(text, SIZE_MAX);
}

static void put_mapping(struct writing *writing, uint32_t number,
			const struct image *image, bool has_names,
			bool has_lines)
{
	const struct object *object = &writing->model->objects[number];
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	Pprof__Mapping mapping = PPROF__MAPPING__INIT, *mappings = &mapping;

	mapping.id = (uint64_t)number + 1;
	if (image) {
		mapping.memory_start = image->start;
		mapping.memory_limit = image->end;
	}
	mapping.filename = string(writing, object->path);
	mapping.build_id = string(
		writing, hexadecimal(object->build_id, object->build_id_size));
	mapping.has_functions = has_names;
	mapping.has_filenames = mapping.has_line_numbers = has_lines;
	piece.mapping = &mappings;
	piece.n_mapping = 1;
	write_piece(writing, &piece);
}

/* pprof takes the first mapping for the main binary. */
static void put_mappings(struct writing *writing, const struct image **images)
{
	const struct model *model = writing->model;
	const char *program = process_string(&model->recording->processes[0],
					     "program");
	bool *has_names = allocate(model->object_count, 1);
	bool *has_lines = allocate(model->object_count, 1);
	struct function *function;
	uint32_t i, first = NONE;

	for (i = 0; i < model->function_count; i++) {
		function = &model->functions[i];
		if (function->object_number == NONE)
			continue;
		function_line(function);
		has_names[function->object_number] |= function->is_named;
		has_lines[function->object_number] |= function->file != NULL;
		progress("finding lines", i, model->function_count);
	}
	for (i = 0; program && i < model->object_count && first == NONE; i++)
		if (!strcmp(model->objects[i].path, program)) {
			first = i;
			put_mapping(writing, i, images[i], has_names[i],
				    has_lines[i]);
		}
	for (i = 0; i < model->object_count; i++)
		if (i != first)
			put_mapping(writing, i, images[i], has_names[i],
				    has_lines[i]);
	free(has_names);
	free(has_lines);
}

/* Writes a function and its only location, which has the same number. */
struct located {
	Pprof__Function function;
	Pprof__Line line;
	Pprof__Location location;
};

static struct located located(struct writing *writing, uint32_t number,
			      const char *name, const char *system_name)
{
	struct located at = { .function = PPROF__FUNCTION__INIT,
			      .line = PPROF__LINE__INIT,
			      .location = PPROF__LOCATION__INIT };

	at.function.id = at.line.function_id = at.location.id =
		(uint64_t)number + 1;
	at.function.name = string(writing, name);
	at.function.system_name = string(writing, system_name);
	return at;
}

static void put_located(struct writing *writing, struct located *at)
{
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	Pprof__Function *function = &at->function;
	Pprof__Location *location = &at->location;
	Pprof__Line *line = &at->line;

	location->line = &line;
	location->n_line = 1;
	piece.location = &location;
	piece.function = &function;
	piece.n_location = piece.n_function = 1;
	write_piece(writing, &piece);
}

static void put_function(struct writing *writing, uint32_t number,
			 const struct image **images)
{
	struct function *function = &writing->model->functions[number];
	struct located at = located(writing, number,
				    shown_name(function, writing->options),
				    linker_name(function));
	const struct image *image;

	if (function->file) {
		at.function.filename = string(writing, function->file);
		at.function.start_line = at.line.line = function->line;
	}
	if (function->object_number != NONE) {
		at.location.mapping_id = (uint64_t)function->object_number + 1;
		image = images[function->object_number];
		at.location.address = function->address +
				      (image ? image->bias : 0);
	}
	put_located(writing, &at);
}

/* Writes a function for memory without a known one; its number follows the last
 * function's. */
static void put_outside(struct writing *writing)
{
	struct located at = located(writing, writing->model->function_count,
				    MEMORY_OUTSIDE, MEMORY_OUTSIDE);

	put_located(writing, &at);
}

/* The location of a place: they follow those of the functions, and that of memory
 * without one. */
static uint64_t place_location(const struct model *model, uint32_t place)
{
	return (uint64_t)model->function_count + 2 + place;
}

/* A line in another file, as of a macro, would stand at a wrong line of this one. */
static int line_at(const struct function *function,
		   const struct frame_place *place)
{
	return function->file && !strcmp(function->file, place->file) ?
		       place->line :
		       function->line;
}

static void put_place(struct writing *writing, uint32_t number, uint32_t place,
		      const struct image **images)
{
	struct model *model = writing->model;
	struct function *function = &model->functions[number];
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	Pprof__Location location = PPROF__LOCATION__INIT,
			*locations = &location;
	Pprof__Line line = PPROF__LINE__INIT, *lines = &line;
	const struct image *image;

	location.id = place_location(model, place);
	line.function_id = (uint64_t)number + 1;
	if (function->file)
		line.line = line_at(function, &model->frames.places[place]);
	if (function->object_number != NONE) {
		location.mapping_id = (uint64_t)function->object_number + 1;
		image = images[function->object_number];
		location.address = function->address +
				   (image ? image->bias : 0);
	}
	location.line = &lines;
	location.n_line = 1;
	piece.location = &locations;
	piece.n_location = 1;
	write_piece(writing, &piece);
}

static void put_places(struct writing *writing, const struct image **images)
{
	const struct model *model = writing->model;
	struct map known = { 0 };
	uint32_t i;

	for (i = 0; i < model->path_count; i++) {
		const struct path *path = &model->paths[i];

		if (path->place == NONE || path->function == NONE ||
		    map_add(&known, path->place, i) != i)
			continue;
		put_place(writing, path->function, path->place, images);
	}
	map_free(&known);
}

static void put_functions(struct writing *writing)
{
	const struct model *model = writing->model;
	const struct image **images = find_images(model);
	uint32_t i;

	put_mappings(writing, images);
	for (i = 0; i < model->function_count; i++)
		put_function(writing, i, images);
	if (writing->types == TYPES)
		put_outside(writing);
	put_places(writing, images);
	free(images);
}

/* --- samples --- */

static void begin_thread(struct writing *writing, uint32_t number)
{
	const struct model *model = writing->model;
	const struct thread *thread = &model->threads[number];
	uint32_t i;

	for (i = 0; i < LABELS; i++)
		writing->labels[i] = (Pprof__Label)PPROF__LABEL__INIT;
	writing->labels[LABEL_PID].key = string(writing, "pid");
	writing->labels[LABEL_PID].num =
		model->recording->processes[thread->process].pid;
	writing->labels[LABEL_TID].key = string(writing, "tid");
	writing->labels[LABEL_TID].num = thread->tid;
	writing->labels[LABEL_THREAD].key = string(writing, "thread");
	writing->labels[LABEL_THREAD].str = string(writing, thread->name);
	/* A thread without a name gets only the other labels. */
	writing->label_count = 0;
	for (i = thread->name[0] ? LABEL_THREAD : LABEL_TID; i < LABELS; i++)
		writing->label[writing->label_count++] = &writing->labels[i];
}

/* Takes the values collected since the last sample; false if all are 0.
 * Rounding the running sum, not each value, keeps totals exact to 1 ns. */
static bool take_values(struct writing *writing, int64_t values[TYPES])
{
	int64_t time = rounded(writing->time);
	bool any = false;
	size_t i;

	for (i = 0; i < TYPES; i++)
		values[i] = limited(writing->memory[i]);
	if (writing->types < TYPES) {
		values[TYPE_COUNT] = limited(writing->count);
		values[TYPE_TIME] = time - writing->time_written;
	}
	for (i = 0; i < TYPES; i++)
		any = any || values[i];
	if (!any)
		return false;
	memset(writing->memory, 0, sizeof(writing->memory));
	writing->count = 0;
	writing->time_written = time;
	return true;
}

/* Writes a sample for the current path. */
static void put_sample(struct writing *writing)
{
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples = &sample;
	uint64_t outside = (uint64_t)writing->model->function_count + 1;
	int64_t values[TYPES];

	if (!take_values(writing, values))
		return;
	sample.location_id = writing->stack + writing->options->max_depth -
			     writing->depth;
	sample.n_location_id = writing->depth;
	if (writing->depth == 0) {
		sample.location_id = &outside;
		sample.n_location_id = 1;
	}
	sample.value = values;
	sample.n_value = writing->types;
	sample.label = writing->label;
	sample.n_label = writing->label_count;
	piece.sample = &samples;
	piece.n_sample = 1;
	write_piece(writing, &piece);
}

static bool enter_path(void *context, uint32_t number, uint32_t depth)
{
	struct writing *writing = context;
	const struct path *path = &writing->model->paths[number];

	(void)depth;
	if (path->function == NONE) {
		if (number != 0)
			begin_thread(writing, path->thread);
		return true;
	}
	writing->depth++;
	if (writing->depth <= writing->options->max_depth)
		writing->stack[writing->options->max_depth - writing->depth] =
			path->place == NONE ?
				(uint64_t)path->function + 1 :
				place_location(writing->model, path->place);
	return true;
}

static void add_memory(struct writing *writing, const struct memory *memory)
{
	writing->memory[TYPE_BLOCKS] += memory->allocations;
	writing->memory[TYPE_BYTES] += memory->allocated;
	writing->memory[TYPE_LEFT_BLOCKS] += memory->live_blocks;
	writing->memory[TYPE_LEFT_BYTES] += memory->live;
}

static void leave_memory(struct writing *writing, uint32_t number)
{
	const struct model *model = writing->model;

	add_memory(writing, &model->memory[number]);
	if (writing->depth <= writing->options->max_depth)
		put_sample(writing);
	if (model->paths[number].function != NONE)
		writing->depth--;
}

/* A path beyond --max-depth counts for its ancestor at that depth, which is
 * left next among those that are not too deep. */
static void leave_path(void *context, uint32_t number, uint32_t depth)
{
	struct writing *writing = context;
	const struct model *model = writing->model;
	const struct path *path = &model->paths[number];
	uint64_t count = model->is_sampled ? path->own : path->calls;

	(void)depth;
	if (writing->types == TYPES) {
		leave_memory(writing, number);
		return;
	}
	if (path->function == NONE)
		return;
	writing->count += count;
	writing->time += path->self;
	writing->negative_time += fmin(path->self, 0);
	if (writing->depth <= writing->options->max_depth)
		put_sample(writing);
	else
		writing->cut_calls += count;
	writing->depth--;
	if (++writing->paths_done % 65536 == 0)
		progress("writing", writing->paths_done, model->path_count);
}

static void put_samples(struct writing *writing)
{
	struct walk walk = { enter_path, leave_path, writing };

	writing->stack = allocate(writing->options->max_depth,
				  sizeof(*writing->stack));
	model_walk(writing->model, 0, &walk);
	free(writing->stack);
	if (writing->cut_calls)
		warn("%" PRIu64 " %s deeper than %u frames are in the paths of "
		     "their ancestors at that depth (--max-depth)",
		     writing->cut_calls, counted_name(writing->model),
		     writing->options->max_depth);
}

/* --- comments on accuracy --- */

struct comments {
	int64_t *strings;
	size_t count, room;
};

static void comment(struct writing *writing, struct comments *comments,
		    const char *text)
{
	GROW(comments->strings, comments->count, comments->room);
	comments->strings[comments->count++] = string(writing, text);
}

static void comment_cost(struct writing *writing, struct comments *comments)
{
	const struct model *model = writing->model;
	char cost[SHORT_TEXT], time[SHORT_TEXT], negative[SHORT_TEXT];

	if (!model->has_times || model->is_sampled || writing->types == TYPES)
		return;
	comment(writing, comments,
		model->raw ?
			"the cost of recording is not subtracted" :
			keep_format(
				"%s of the cost of recording subtracted from %s",
				human_ns(cost, model->time_raw - model->time),
				human_ns(time, model->time_raw)));
	/* A smaller value would not be visible in pprof's percentages. */
	if (-writing->negative_time > model->time / 1000)
		comment(writing, comments,
			keep_format(
				"self times of some paths are below 0, by "
				"%s in all: their measured times are too "
				"short by chance; pprof's total and "
				"percentages take them as positive",
				human_ns(negative, -writing->negative_time)));
}

static void comment_losses(struct writing *writing, struct comments *comments)
{
	const struct model *model = writing->model;
	uint32_t i;

	for (i = 0; i < SHIM_LOST_CAUSES; i++)
		if (model->lost_causes[i])
			comment(writing, comments,
				keep_format("%" PRIu64 " %s lost: %s",
					    model->lost_causes[i],
					    counted_name(model),
					    lost_names[i]));
	for (i = 0; i < SHIM_LOST_KINDS; i++)
		if (lost_sum(model->lost_others[i]))
			comment(writing, comments,
				keep_format("%" PRIu64 " %s lost",
					    lost_sum(model->lost_others[i]),
					    lost_kinds[i]));
	if (model->open)
		comment(writing, comments,
			keep_format(
				"%" PRIu64 " %s open at the end", model->open,
				model->open == 1 ? "call was" : "calls were"));
	if (model->older)
		comment(writing, comments,
			keep_format(
				"%" PRIu64 " %s open before the attach: not "
				"counted, and timed from there on",
				model->older,
				model->older == 1 ? "call was" : "calls were"));
	if (model->unwound || model->orphans)
		comment(writing, comments,
			keep_format("%" PRIu64
				    " calls ended without a leave, %" PRIu64
				    " leaves had no call",
				    model->unwound, model->orphans));
}

static void put_comments(struct writing *writing)
{
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	struct comments comments = { 0 };
	const char *command;
	size_t i;

	command = process_string(&writing->model->recording->processes[0],
				 "command");
	if (command)
		comment(writing, &comments,
			keep_format("command: %s", command));
	comment_cost(writing, &comments);
	comment_losses(writing, &comments);
	for (i = 0; i < warning_count(); i++)
		comment(writing, &comments, warning_text(i));
	piece.comment = comments.strings;
	piece.n_comment = comments.count;
	write_piece(writing, &piece);
	free(comments.strings);
}

static void pprof_print(FILE *out, struct model *model,
			const struct options *options)
{
	struct writing writing = { .model = model,
				   .options = options,
				   .types = options->memory  ? TYPES :
					    model->has_times ? CALL_TYPES :
							       TYPE_TIME };

	writing.gzip = gzip_begin(out);
	string(&writing, "");
	if (options->memory)
		put_memory_head(&writing);
	else
		put_head(&writing);
	put_functions(&writing);
	put_samples(&writing);
	put_comments(&writing);
	put_strings(&writing);
	gzip_end(writing.gzip);
	names_free(&writing.strings);
	free(writing.packed);
}

EXPORT_FORMAT(pprof) = {
	.name = "pprof",
	.extension = "pb.gz",
	.description = "call paths, for go tool pprof",
	.values = VALUES_OF_CALLS | VALUE_BIT(VALUE_BYTES) |
		  VALUE_BIT(VALUE_ALLOCATIONS) | VALUE_BIT(VALUE_LEAKED),
	.is_binary = true,
	.has_threads_always = true,
	.has_lines = true,
	.shows_one_value = true,
	.has_calls_always = true,
	.print = pprof_print,
};
