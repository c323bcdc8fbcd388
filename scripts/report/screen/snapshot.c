/*
 * The child reads the recording as the report does and writes structures, as they are in
 * memory, into a pipe.  The parent believes sizes only.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/seconds.h"
#include "model/choose.h"
#include "model/estimates.h"
#include "model/functions.h"
#include "model/known_functions.h"
#include "model/locks.h"
#include "model/model.h"
#include "model/neighbours.h"
#include "model/options.h"
#include "model/totals.h"
#include "read/recording.h"
#include "screen/snapshot.h"

/* Snapshots of greater size are refused. */
#define SIZE_MOST (256u << 20)

/* --- the child --- */

struct texts {
	char *text;
	uint32_t size, room;
};

static uint32_t add_text(struct texts *texts, const char *text)
{
	uint32_t at = texts->size, size = (uint32_t)strlen(text) + 1;

	if (texts->size + size > texts->room) {
		texts->room = 2 * (texts->size + size);
		texts->text = grow(texts->text, texts->room, 1);
	}
	memcpy(texts->text + at, text, size);
	texts->size += size;
	return at;
}

/* FNV-1a, which is the same in each process. */
static uint64_t add_to_key(uint64_t key, const char *text)
{
	do
		key = (key ^ (unsigned char)*text) * 0x100000001b3;
	while (*text++);
	return key;
}

static uint64_t key_of(const struct function *function)
{
	uint64_t key = 0xcbf29ce484222325;

	key = add_to_key(key, function->object ? function->object->path : "");
	key = add_to_key(key, function->mangled);
	return key ? key : 1;
}

static double *find_waits(const struct model *model)
{
	double *waits = allocate(model->function_count, sizeof(*waits));
	uint32_t i;

	for (i = 0; i < model->path_count && model->locks; i++)
		if (model->paths[i].function != NONE)
			waits[model->paths[i].function] += locks_waited(model,
									i);
	return waits;
}

static struct snapshot_row row_of(const struct model *model, uint32_t number,
				  double waited, struct texts *texts)
{
	const struct function *function = &model->functions[number];
	const struct sums *sums = &function->sums;
	struct snapshot_row row = {
		.key = key_of(function),
		.name = add_text(texts, function->name),
		.short_name = add_text(texts, function->short_name),
		.object = add_text(texts, object_name(function)),
		.is_timed = !is_untimed(sums),
		.is_counted = sums_are_counted(sums),
		.is_estimate = sums->missing.is_estimate ||
			       sums->missing.is_unknown,
		.calls = sums->calls,
		.self = fmax(sums->self, 0),
		.total = fmax(sums->total, 0),
		.waited = waited,
	};

	if (model->has_memory) {
		row.bytes = model->function_memory[number].allocated;
		row.blocks = model->function_memory[number].allocations;
	}
	return row;
}

static int compare_rows(const void *left, const void *right)
{
	const struct snapshot_row *a = left, *b = right;

	return (a->key > b->key) - (a->key < b->key);
}

/* Functions of one name in one object are one row: their addresses may differ from one
 * snapshot to the next. */
static uint32_t merge_rows(struct snapshot_row *rows, uint32_t count)
{
	uint32_t i, n = 0;

	for (i = 0; i < count; i++) {
		struct snapshot_row *last = n ? &rows[n - 1] : NULL;

		if (!last || last->key != rows[i].key) {
			rows[n++] = rows[i];
			continue;
		}
		last->calls += rows[i].calls;
		last->bytes += rows[i].bytes;
		last->blocks += rows[i].blocks;
		last->self += rows[i].self;
		last->total += rows[i].total;
		last->waited += rows[i].waited;
		last->is_timed |= rows[i].is_timed;
		last->is_counted |= rows[i].is_counted;
		last->is_estimate |= rows[i].is_estimate;
	}
	return n;
}

static void add_rows(struct snapshot *snapshot, const struct model *model,
		     struct texts *texts)
{
	double *waits = find_waits(model);
	uint32_t i, count = 0;

	snapshot->rows = allocate(model->function_count,
				  sizeof(*snapshot->rows));
	for (i = 0; i < model->function_count; i++)
		if (sums_are_there(&model->functions[i].sums) || waits[i] > 0 ||
		    (model->has_memory &&
		     model->function_memory[i].allocations))
			snapshot->rows[count++] = row_of(model, i, waits[i],
							 texts);
	if (count)
		qsort(snapshot->rows, count, sizeof(*snapshot->rows),
		      compare_rows);
	snapshot->head.row_count = merge_rows(snapshot->rows, count);
	free(waits);
}

static void add_threads(struct snapshot *snapshot, const struct model *model,
			struct texts *texts)
{
	uint32_t i;

	snapshot->threads = allocate(model->thread_count,
				     sizeof(*snapshot->threads));
	snapshot->head.thread_count = model->thread_count;
	for (i = 0; i < model->thread_count; i++)
		snapshot->threads[i] = (struct snapshot_thread){
			.tid = model->threads[i].tid,
			.name = add_text(texts, model->threads[i].name),
			.calls = model->threads[i].calls,
			.lost = lost_sum(model->threads[i].lost),
			.self = fmax(model->threads[i].self, 0),
		};
}

static void add_neighbours(struct snapshot *snapshot, const struct model *model,
			   const bool *wanted, bool callers,
			   struct texts *texts)
{
	struct sums *sums = neighbours_of(model, wanted, callers);
	uint32_t i, *count = &snapshot->head.neighbour_count;
	bool is_outside;

	for (i = 0; i <= model->function_count; i++) {
		if (!sums_are_there(&sums[i]))
			continue;
		is_outside = i == model->function_count;
		snapshot->neighbours[(*count)++] = (struct snapshot_neighbour){
			.key = is_outside ? 0 : key_of(&model->functions[i]),
			.name = add_text(texts,
					 is_outside ?
						 "(none: first in its thread)" :
						 model->functions[i].name),
			.is_caller = callers,
			.calls = sums[i].calls,
			.total = fmax(sums[i].total, 0),
		};
	}
	free(sums);
}

static void add_chosen(struct snapshot *snapshot, const struct model *model,
		       uint64_t chosen, struct texts *texts)
{
	bool *wanted = allocate(model->function_count, sizeof(*wanted));
	uint32_t i;

	snapshot->neighbours = allocate(2 * (model->function_count + 1),
					sizeof(*snapshot->neighbours));
	for (i = 0; i < model->function_count; i++)
		wanted[i] = key_of(&model->functions[i]) == chosen;
	add_neighbours(snapshot, model, wanted, true, texts);
	add_neighbours(snapshot, model, wanted, false, texts);
	free(wanted);
}

static uint32_t add_known_text(struct texts *texts, const char *text)
{
	return text ? add_text(texts, text) : 0;
}

/* Names that were not known to the parent when this process began. */
static void add_names(struct snapshot *snapshot, struct texts *texts)
{
	uint32_t i, count = known_functions_count();

	snapshot->names = allocate(count, sizeof(*snapshot->names));
	for (i = 0; i < count; i++) {
		const struct known_function *known = known_functions_at(i);

		if (!known->is_new)
			continue;
		snapshot->names[snapshot->head.name_count++] =
			(struct snapshot_name){
				.address = known->address,
				.object = add_text(texts, known->object),
				.name = add_known_text(texts, known->name),
				.source_name = add_known_text(
					texts, known->source_name),
				.file = add_known_text(texts, known->file),
				.line = known->line,
				.has_line = known->has_line,
			};
	}
}

static void add_head(struct snapshot_head *head, const struct model *model)
{
	uint32_t i;

	head->calls = model->calls;
	head->lost = model->lost + model->damaged;
	for (i = 0; i < SHIM_LOST_KINDS; i++)
		head->lost += lost_sum(model->lost_others[i]);
	head->time = fmax(model->time, 0);
	head->cost = fmax(model->time_raw - head->time, 0);
	head->period_ns = model->period_ns;
	head->has_times = model->has_times;
	head->has_memory = model->has_memory;
	head->has_waits = model->locks != NULL;
	head->is_sampled = model->is_sampled;
	head->has_budget = model->budget != NULL;
	head->has_end = model->recording->has_end;
}

static void put(const void *bytes, size_t count, size_t size, FILE *out)
{
	if (count && fwrite(bytes, size, count, out) != count)
		_exit(1);
}

static _Noreturn void take(int fd, const char *path,
			   const struct options *options, uint64_t chosen)
{
	struct snapshot snapshot = { .head = { .seconds = seconds_of(
						       CLOCK_MONOTONIC) } };
	struct texts texts = { .size = 0 };
	struct recording recording;
	struct model model;
	FILE *out = fdopen(fd, "w");

	if (!out)
		_exit(1);
	choose_read(&model, NULL, &recording, options, path);
	add_text(&texts, ""); /* no text has offset 0 */
	add_head(&snapshot.head, &model);
	add_rows(&snapshot, &model, &texts);
	add_threads(&snapshot, &model, &texts);
	if (chosen)
		add_chosen(&snapshot, &model, chosen, &texts);
	add_names(&snapshot, &texts);
	snapshot.head.text_size = texts.size;
	put(&snapshot.head, 1, sizeof(snapshot.head), out);
	put(snapshot.rows, snapshot.head.row_count, sizeof(*snapshot.rows),
	    out);
	put(snapshot.threads, snapshot.head.thread_count,
	    sizeof(*snapshot.threads), out);
	put(snapshot.neighbours, snapshot.head.neighbour_count,
	    sizeof(*snapshot.neighbours), out);
	put(snapshot.names, snapshot.head.name_count, sizeof(*snapshot.names),
	    out);
	put(texts.text, texts.size, 1, out);
	_exit(fflush(out) ? 1 : 0);
}

/* --- the parent --- */

static void begin_child(int out, int errors, const char *path,
			const struct options *options, uint64_t chosen)
{
	/* The terminal is the parent's, also when this process dies. */
	die_at_once();
	progress_off();
	signal(SIGINT, SIG_IGN);
	signal(SIGTSTP, SIG_IGN);
	signal(SIGWINCH, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	dup2(errors, STDERR_FILENO);
	take(out, path, options, chosen);
}

static int open_errors(void)
{
	FILE *file = tmpfile();
	int fd = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 3) : -1;

	if (file)
		fclose(file);
	return fd;
}

bool shot_begin(struct shot *shot, const char *path,
		const struct options *options, uint64_t chosen)
{
	int ends[2];

	shot->fd = -1;
	shot->size = 0;
	shot->errors = open_errors();
	if (shot->errors < 0)
		return false;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		close(shot->errors);
		return false;
	}
	known_functions_look_again();
	shot->pid = fork();
	if (shot->pid == 0) {
		close(ends[0]);
		begin_child(ends[1], shot->errors, path, options, chosen);
	}
	close(ends[1]);
	if (shot->pid < 0) {
		close(ends[0]);
		close(shot->errors);
		return false;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	shot->fd = ends[0];
	return true;
}

static int reap(struct shot *shot)
{
	struct rusage used;
	int status = 0;

	while (wait4(shot->pid, &status, 0, &used) < 0 && errno == EINTR)
		continue;
	shot->cpu += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
		     (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) /
			     1e6;
	close(shot->fd);
	shot->fd = -1;
	return status;
}

void shot_end(struct shot *shot)
{
	if (shot->fd >= 0) {
		kill(shot->pid, SIGKILL);
		reap(shot);
		close(shot->errors);
	}
	free(shot->memory);
	shot->memory = NULL;
	shot->room = shot->size = 0;
}

/* The first line that the child wrote to standard error, or "". */
static void read_error(int fd, char *why, size_t size)
{
	ssize_t length;

	lseek(fd, 0, SEEK_SET);
	length = read(fd, why, size - 1);
	why[length > 0 ? length : 0] = '\0';
	why[strcspn(why, "\n")] = '\0';
	close(fd);
}

/* Finds the parts; false: the sizes do not agree. */
static bool divide(struct snapshot *snapshot, char *memory, size_t size)
{
	struct snapshot_head *head = &snapshot->head;
	char *at = memory + sizeof(*head);
	uint64_t wanted = sizeof(*head);

	if (size < sizeof(*head))
		return false;
	memcpy(head, memory, sizeof(*head));
	wanted += (uint64_t)head->row_count * sizeof(*snapshot->rows) +
		  (uint64_t)head->thread_count * sizeof(*snapshot->threads) +
		  (uint64_t)head->neighbour_count *
			  sizeof(*snapshot->neighbours) +
		  (uint64_t)head->name_count * sizeof(*snapshot->names) +
		  head->text_size;
	if (wanted != size)
		return false;
	snapshot->memory = memory;
	snapshot->rows = (struct snapshot_row *)(void *)at;
	at += head->row_count * sizeof(*snapshot->rows);
	snapshot->threads = (struct snapshot_thread *)(void *)at;
	at += head->thread_count * sizeof(*snapshot->threads);
	snapshot->neighbours = (struct snapshot_neighbour *)(void *)at;
	at += head->neighbour_count * sizeof(*snapshot->neighbours);
	snapshot->names = (struct snapshot_name *)(void *)at;
	at += head->name_count * sizeof(*snapshot->names);
	snapshot->text = at;
	return true;
}

static const char *keep_known_text(const struct snapshot *snapshot, uint32_t at)
{
	return at ? keep_text(snapshot->text + at, SIZE_MAX) : NULL;
}

/* The next process does not look these up again. */
static void keep_names(const struct snapshot *snapshot)
{
	struct names objects = { 0 };
	uint32_t i;

	for (i = 0; i < snapshot->head.name_count; i++) {
		const struct snapshot_name *name = &snapshot->names[i];
		uint32_t before = objects.count;
		uint32_t object = names_add(&objects,
					    snapshot->text + name->object);

		if (object == before)
			objects.text[object] = keep_text(objects.text[object],
							 SIZE_MAX);
		known_functions_add(&(struct known_function){
			.object = objects.text[object],
			.address = name->address,
			.name = keep_known_text(snapshot, name->name),
			.source_name = keep_known_text(snapshot,
						       name->source_name),
			.file = keep_known_text(snapshot, name->file),
			.line = name->line,
			.has_line = name->has_line,
		});
	}
	names_free(&objects);
}

enum shot_state shot_read(struct shot *shot, struct snapshot *snapshot,
			  char *why, size_t why_size)
{
	ssize_t got;
	int status;

	for (;;) {
		if (shot->size == shot->room && shot->room < SIZE_MOST) {
			shot->room = shot->room ? 2 * shot->room : 1 << 16;
			shot->memory = grow(shot->memory, shot->room, 1);
		}
		got = read(shot->fd, shot->memory + shot->size,
			   shot->room - shot->size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		shot->size += (size_t)got;
	}
	if (got < 0 && errno == EAGAIN)
		return SHOT_GOES_ON;
	status = reap(shot);
	read_error(shot->errors, why, why_size);
	if (status == 0 && divide(snapshot, shot->memory, shot->size)) {
		shot->memory = NULL;
		shot->room = 0;
		keep_names(snapshot);
		return SHOT_DONE;
	}
	if (!why[0])
		snprintf(why, why_size, "the recording cannot be read");
	return SHOT_FAILED;
}

const struct snapshot_row *snapshot_find(const struct snapshot *snapshot,
					 uint64_t key)
{
	const struct snapshot_row wanted = { .key = key };

	return snapshot->head.row_count ?
		       bsearch(&wanted, snapshot->rows,
			       snapshot->head.row_count, sizeof(wanted),
			       compare_rows) :
		       NULL;
}
