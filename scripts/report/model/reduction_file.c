/*
 * Writes and reads the file of a reduction: a head, then arrays, then texts.
 * Pointers to texts are numbers of texts in the file.  Numbers are checked when
 * they are read, because a program may have damaged the file.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/names.h"
#include "model/reduction.h"

#define MAGIC	"SHIMRANK"
#define VERSION 1u

/* A number of a text; NONE: no text. */
struct stored_function {
	uint32_t process, group, key, generation;
	uint64_t address, calls;
	double tick;
	uint32_t has_hooks, has_histogram;
};

struct stored_rank {
	uint64_t calls;
	uint32_t name, unused;
};

struct stored_process {
	uint64_t end_clock, latest_clock;
	uint32_t name, end_source, unused[2];
};

struct stored_thread {
	struct thread thread;
	uint32_t process, name;
};

struct stored_part {
	uint64_t identity;
	uint32_t name, unused;
};

struct head {
	char magic[8];
	uint32_t version, sum_of_sizes;
	uint32_t parts, ranks, processes, threads, functions, histograms;
	uint32_t paths, figures, warnings, texts;
	uint64_t text_size;
	struct reduced_sums sums;
};

/* A file of a program with other structures has another sum, but for chance. */
static uint32_t sum_of_sizes(void)
{
	const size_t sizes[] = {
		sizeof(struct head),	       sizeof(struct stored_function),
		sizeof(struct reduced_path),   sizeof(struct stored_thread),
		sizeof(struct reduced_figure), sizeof(struct stored_process),
		offsetof(struct path, seen),   offsetof(struct path, tick),
		offsetof(struct path, min),
	};
	uint32_t sum = 0, i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		sum = sum * 31 + (uint32_t)sizes[i];
	return sum;
}

/* --- writing --- */

static uint32_t text_number(struct names *texts, const char *text)
{
	return text ? names_add(texts, text) : NONE;
}

static void write_functions(const struct reduction *reduction, FILE *file,
			    struct names *texts)
{
	uint32_t i;

	for (i = 0; i < reduction->function_count; i++) {
		const struct reduced_function *function =
			&reduction->functions[i];
		struct stored_function stored = {
			.process = text_number(texts, function->process),
			.group = text_number(texts, function->group),
			.key = text_number(texts, function->key),
			.generation = function->generation,
			.address = function->address,
			.calls = function->calls,
			.tick = function->tick,
			.has_hooks = function->has_hooks,
			.has_histogram = function->histogram != NULL,
		};

		fwrite(&stored, sizeof(stored), 1, file);
	}
	for (i = 0; i < reduction->function_count; i++)
		if (reduction->functions[i].histogram)
			fwrite(reduction->functions[i].histogram,
			       sizeof(uint64_t), SHIM_BUCKETS, file);
}

static void write_processes(const struct reduction *reduction, FILE *file,
			    struct names *texts)
{
	uint32_t i;

	for (i = 0; i < reduction->process_count; i++) {
		const struct reduced_process *process =
			&reduction->processes[i];
		struct stored_process stored = {
			.end_clock = process->end_clock,
			.latest_clock = process->latest_clock,
			.name = text_number(texts, process->name),
			.end_source = process->end_source,
		};

		fwrite(&stored, sizeof(stored), 1, file);
	}
	for (i = 0; i < reduction->thread_count; i++) {
		struct stored_thread stored;

		memset(&stored, 0, sizeof(stored));
		stored.thread = reduction->threads[i].thread;
		stored.thread.name = NULL;
		stored.process = text_number(texts,
					     reduction->threads[i].process);
		stored.name = text_number(texts,
					  reduction->threads[i].thread.name);
		fwrite(&stored, sizeof(stored), 1, file);
	}
}

static void write_parts(const struct reduction *reduction, FILE *file,
			struct names *texts)
{
	uint32_t i;

	for (i = 0; i < reduction->parts.count; i++) {
		struct stored_part stored = {
			reduction->part_identities[i],
			text_number(texts, reduction->parts.text[i]), 0
		};

		fwrite(&stored, sizeof(stored), 1, file);
	}
	for (i = 0; i < reduction->rank_count; i++) {
		struct stored_rank stored = {
			reduction->ranks[i].calls,
			text_number(texts, reduction->ranks[i].name), 0
		};

		fwrite(&stored, sizeof(stored), 1, file);
	}
}

static uint32_t count_histograms(const struct reduction *reduction)
{
	uint32_t count = 0, i;

	for (i = 0; i < reduction->function_count; i++)
		count += reduction->functions[i].histogram != NULL;
	return count;
}

bool reduction_write(const struct reduction *reduction, FILE *file)
{
	struct head head = {
		.magic = MAGIC,
		.version = VERSION,
		.sum_of_sizes = sum_of_sizes(),
		.parts = reduction->parts.count,
		.ranks = reduction->rank_count,
		.processes = reduction->process_count,
		.threads = reduction->thread_count,
		.functions = reduction->function_count,
		.histograms = count_histograms(reduction),
		.paths = reduction->path_count,
		.figures = reduction->figure_count,
		.warnings = reduction->warnings.count,
		.sums = reduction->sums,
	};
	struct names texts = { 0 };
	uint32_t i, number;

	/* The head is complete when all texts are known. */
	fwrite(&head, sizeof(head), 1, file);
	write_parts(reduction, file, &texts);
	write_processes(reduction, file, &texts);
	write_functions(reduction, file, &texts);
	fwrite(reduction->paths, sizeof(*reduction->paths),
	       reduction->path_count, file);
	fwrite(reduction->figures, sizeof(*reduction->figures),
	       reduction->figure_count, file);
	for (i = 0; i < reduction->warnings.count; i++) {
		number = text_number(&texts, reduction->warnings.text[i]);
		fwrite(&number, sizeof(number), 1, file);
	}
	for (i = 0; i < texts.count; i++) {
		size_t size = strlen(texts.text[i]) + 1;

		fwrite(texts.text[i], 1, size, file);
		head.text_size += size;
	}
	head.texts = texts.count;
	names_free(&texts);
	if (fflush(file) != 0 || ferror(file) || fseek(file, 0, SEEK_SET) < 0)
		return false;
	fwrite(&head, sizeof(head), 1, file);
	return fflush(file) == 0 && !ferror(file);
}

/* --- reading --- */

struct input {
	FILE *file;
	struct head head;
	const char **texts;
	bool is_bad;
};

/* The next @count items of @size bytes; all zero if the file is too short. */
static void *take(struct input *input, uint32_t count, size_t size)
{
	void *items = allocate(count, size);

	if (fread(items, size, count, input->file) != count) {
		input->is_bad = true;
		memset(items, 0, count * size);
	}
	return items;
}

static const char *text_of(struct input *input, uint32_t number)
{
	if (number < input->head.texts)
		return input->texts[number];
	input->is_bad = true;
	return "";
}

static const char *text_or_null(struct input *input, uint32_t number)
{
	return number == NONE ? NULL : text_of(input, number);
}

/* The texts are the last @text_size bytes of the file. */
static void read_texts(struct input *input, uint64_t size)
{
	uint64_t text_size = input->head.text_size, at = 0;
	char *text = allocate(text_size + 1, 1); /* it stays */
	uint32_t i;

	input->texts = allocate(input->head.texts, sizeof(*input->texts));
	if (fseek(input->file, (long)(size - text_size), SEEK_SET) < 0 ||
	    fread(text, 1, text_size, input->file) != text_size ||
	    fseek(input->file, sizeof(input->head), SEEK_SET) < 0)
		input->is_bad = true;
	for (i = 0; i < input->head.texts; i++) {
		input->is_bad |= at >= text_size;
		input->texts[i] = at < text_size ? text + at : "";
		at += strlen(input->texts[i]) + 1;
	}
}

static void read_parts(struct reduction *reduction, struct input *input)
{
	struct stored_part *parts = take(input, input->head.parts,
					 sizeof(*parts));
	struct stored_rank *ranks = take(input, input->head.ranks,
					 sizeof(*ranks));
	uint32_t i;

	reduction->part_room = input->head.parts;
	reduction->part_identities = allocate(input->head.parts,
					      sizeof(uint64_t));
	for (i = 0; i < input->head.parts; i++) {
		input->is_bad |= names_add(&reduction->parts,
					   text_of(input, parts[i].name)) != i;
		reduction->part_identities[i] = parts[i].identity;
	}
	reduction->rank_room = reduction->rank_count = input->head.ranks;
	reduction->ranks = allocate(input->head.ranks,
				    sizeof(*reduction->ranks));
	for (i = 0; i < input->head.ranks; i++)
		reduction->ranks[i] = (struct reduced_rank){
			text_of(input, ranks[i].name), ranks[i].calls
		};
	free(parts);
	free(ranks);
}

static void read_processes(struct reduction *reduction, struct input *input)
{
	uint32_t count = input->head.processes, i;
	struct stored_process *stored = take(input, count, sizeof(*stored));
	struct stored_thread *threads;

	reduction->process_room = reduction->process_count = count;
	reduction->processes = allocate(count, sizeof(*reduction->processes));
	for (i = 0; i < count; i++)
		reduction->processes[i] = (struct reduced_process){
			.name = text_of(input, stored[i].name),
			.end_clock = stored[i].end_clock,
			.latest_clock = stored[i].latest_clock,
			.end_source = stored[i].end_source,
		};
	free(stored);
	count = input->head.threads;
	threads = take(input, count, sizeof(*threads));
	reduction->thread_room = reduction->thread_count = count;
	reduction->threads = allocate(count, sizeof(*reduction->threads));
	for (i = 0; i < count; i++) {
		reduction->threads[i] = (struct reduced_thread){
			text_of(input, threads[i].process), threads[i].thread
		};
		memset(&reduction->threads[i].thread.missing, 0,
		       sizeof(struct missing));
		reduction->threads[i].thread.name = text_of(input,
							    threads[i].name);
	}
	free(threads);
}

static void read_functions(struct reduction *reduction, struct input *input)
{
	uint32_t count = input->head.functions, i, histograms = 0;
	struct stored_function *stored = take(input, count, sizeof(*stored));

	reduction->function_room = reduction->function_count = count;
	reduction->functions = allocate(count, sizeof(*reduction->functions));
	for (i = 0; i < count; i++) {
		struct reduced_function *function = &reduction->functions[i];

		*function = (struct reduced_function){
			.process = text_of(input, stored[i].process),
			.group = text_or_null(input, stored[i].group),
			.key = text_of(input, stored[i].key),
			.generation = stored[i].generation,
			.address = stored[i].address,
			.calls = stored[i].calls,
			.tick = stored[i].tick,
			.has_hooks = stored[i].has_hooks,
		};
		input->is_bad |= names_add(&reduction->keys, function->key) !=
				 i;
	}
	for (i = 0; i < count; i++) {
		if (!stored[i].has_histogram)
			continue;
		histograms++;
		reduction->functions[i].histogram = take(input, SHIM_BUCKETS,
							 sizeof(uint64_t));
	}
	input->is_bad |= histograms != input->head.histograms;
	free(stored);
}

/* A byte of a bool is 0 or 1; any other value is damage. */
static bool is_flag(const bool *flag)
{
	unsigned char byte;

	memcpy(&byte, flag, 1);
	return byte <= 1;
}

static bool has_flags(const struct path *path)
{
	return is_flag(&path->has_waited) && is_flag(&path->is_timed) &&
	       is_flag(&path->has_no_range);
}

static bool has_sums(const struct reduced_sums *sums)
{
	return is_flag(&sums->has_extras) && is_flag(&sums->has_errors) &&
	       is_flag(&sums->has_times) && is_flag(&sums->has_untimed_ranks);
}

/* A path is after its parent. */
static bool is_possible(const struct reduction *reduction, uint32_t number)
{
	const struct reduced_path *path = &reduction->paths[number];
	const struct rank_spread *spread = &path->spread;

	if (!has_flags(&path->path))
		return false;
	if (number == 0)
		return path->path.function == NONE;
	return path->path.parent < number &&
	       path->path.function < reduction->function_count &&
	       spread->count <= reduction->rank_count &&
	       (spread->count == 0 ||
		(spread->least_rank < reduction->rank_count &&
		 spread->most_rank < reduction->rank_count)) &&
	       (spread->missing == NONE ||
		spread->missing < reduction->rank_count);
}

static void read_paths(struct reduction *reduction, struct input *input)
{
	uint32_t i;

	reduction->path_room = reduction->path_count = input->head.paths;
	reduction->paths = take(input, input->head.paths,
				sizeof(*reduction->paths));
	for (i = 0; i < reduction->path_count && !input->is_bad; i++) {
		const struct path *path = &reduction->paths[i].path;

		input->is_bad |= !is_possible(reduction, i);
		map_add(&reduction->path_by_key,
			(uint64_t)path->parent << 32 | path->function, i);
	}
	reduction->figure_room = reduction->figure_count = input->head.figures;
	reduction->figures = take(input, input->head.figures,
				  sizeof(*reduction->figures));
	for (i = 0; i < reduction->figure_count; i++)
		input->is_bad |= reduction->figures[i].function >=
					 reduction->function_count ||
				 reduction->figures[i].rank >=
					 reduction->rank_count;
}

/* The least that the arrays take, so that a damaged head asks for no more memory
 * than the file has bytes. */
static bool is_large_enough(const struct head *head, uint64_t size)
{
	uint64_t least = sizeof(*head);

	least += head->parts * (uint64_t)sizeof(struct stored_part);
	least += head->ranks * (uint64_t)sizeof(struct stored_rank);
	least += head->processes * (uint64_t)sizeof(struct stored_process);
	least += head->threads * (uint64_t)sizeof(struct stored_thread);
	least += head->functions * (uint64_t)sizeof(struct stored_function);
	least += head->paths * (uint64_t)sizeof(struct reduced_path);
	least += head->figures * (uint64_t)sizeof(struct reduced_figure);
	least += head->warnings * (uint64_t)sizeof(uint32_t);
	return head->text_size <= size && head->texts <= head->text_size &&
	       least <= size - head->text_size && head->paths > 0;
}

bool reduction_read(struct reduction *reduction, int fd)
{
	struct input input = { .file = fdopen(fd, "re") };
	uint32_t i, *warnings;
	struct stat info;

	*reduction = (struct reduction){ .path_count = 0 };
	if (!input.file)
		return false;
	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) ||
	    fread(&input.head, sizeof(input.head), 1, input.file) != 1 ||
	    memcmp(input.head.magic, MAGIC, sizeof(input.head.magic)) != 0 ||
	    input.head.version != VERSION ||
	    input.head.sum_of_sizes != sum_of_sizes() ||
	    !has_sums(&input.head.sums) ||
	    !is_large_enough(&input.head, (uint64_t)info.st_size)) {
		fclose(input.file);
		return false;
	}
	reduction->sums = input.head.sums;
	read_texts(&input, (uint64_t)info.st_size);
	read_parts(reduction, &input);
	read_processes(reduction, &input);
	read_functions(reduction, &input);
	read_paths(reduction, &input);
	warnings = take(&input, input.head.warnings, sizeof(*warnings));
	for (i = 0; i < input.head.warnings; i++)
		names_add(&reduction->warnings, text_of(&input, warnings[i]));
	free(warnings);
	free(input.texts);
	fclose(input.file);
	return !input.is_bad;
}
