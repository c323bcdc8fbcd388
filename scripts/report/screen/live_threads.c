/* The threads of a process that runs, by their time in the last interval. */
#include <curses.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "screen/numbers.h"
#include "screen/snapshot.h"
#include "screen/terminal.h"
#include "screen/top.h"
#include "screen/view.h"

#define ID_WIDTH    8
#define CALLS_WIDTH 13

struct live_thread {
	const struct snapshot_thread *thread;
	double calls, self;
};

struct live_threads {
	struct view view;
	struct top *top;
	struct live_thread *rows;
	uint64_t generation;
};

static int compare_rows(const void *left, const void *right)
{
	const struct live_thread *a = left, *b = right;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->calls != b->calls)
		return a->calls > b->calls ? -1 : 1;
	return (a->thread->tid > b->thread->tid) -
	       (a->thread->tid < b->thread->tid);
}

/* Threads keep their numbers, because they are only added. */
static const struct snapshot_thread *find_before(const struct snapshot *before,
						 uint32_t number, uint32_t tid)
{
	uint32_t i;

	if (number < before->head.thread_count &&
	    before->threads[number].tid == tid)
		return &before->threads[number];
	for (i = 0; i < before->head.thread_count; i++)
		if (before->threads[i].tid == tid)
			return &before->threads[i];
	return NULL;
}

static void arrange(struct live_threads *threads)
{
	const struct top *top = threads->top;
	uint32_t i, count = top->now.head.thread_count;

	threads->generation = top->generation;
	free(threads->rows);
	threads->rows = allocate(count, sizeof(*threads->rows));
	for (i = 0; i < count; i++) {
		const struct snapshot_thread *now = &top->now.threads[i];
		const struct snapshot_thread *before = find_before(&top->before,
								   i, now->tid);

		threads->rows[i] = (struct live_thread){
			now,
			top_rate(top, (double)now->calls,
				 before ? (double)before->calls : 0),
			top_rate(top, now->self, before ? before->self : 0),
		};
	}
	if (count)
		qsort(threads->rows, count, sizeof(*threads->rows),
		      compare_rows);
	threads->view.list.count = count;
}

static void draw_title(struct view *view, struct row *row)
{
	struct live_threads *threads = (struct live_threads *)view;

	if (threads->generation != threads->top->generation)
		arrange(threads);
	top_draw_title(threads->top, "threads", row);
}

static void draw_columns(struct view *view, struct row *row)
{
	bool sums = ((struct live_threads *)view)->top->since_start;

	row_number(row, "tid", ID_WIDTH);
	row_number(row, sums ? "calls" : "calls/s", CALLS_WIDTH);
	row_number(row, sums ? "time" : "time/s", TIME_WIDTH);
	row_number(row, "lost", ID_WIDTH);
	row_text(row, "name");
}

static void draw_row(struct view *view, uint32_t number, struct row *row)
{
	const struct live_threads *threads = (struct live_threads *)view;
	const struct live_thread *at = &threads->rows[number];
	const struct top *top = threads->top;
	char text[SHORT_TEXT];

	snprintf(text, sizeof(text), "%u", at->thread->tid);
	row_number(row, text, ID_WIDTH);
	row_number(row,
		   top_has_rates(top) ? human_count(text, whole(at->calls)) :
					"-",
		   CALLS_WIDTH);
	row_number(row,
		   time_text(text, at->self,
			     top_has_rates(top) && top->now.head.has_times),
		   TIME_WIDTH);
	row_number(row, human_count(text, at->thread->lost), ID_WIDTH);
	row_text(row, top->now.text + at->thread->name);
}

static bool do_key(struct screen *screen, struct view *view, int key)
{
	return top_key(screen, ((struct live_threads *)view)->top, key);
}

static void end(struct view *view)
{
	free(((struct live_threads *)view)->rows);
	free(view);
}

static const struct view_kind kind = {
	.keys = " ? help  " TOP_KEYS,
	.help = TOP_HELP,
	.title = draw_title,
	.columns = draw_columns,
	.draw = draw_row,
	.key = do_key,
	.end = end,
};

struct view *live_threads_view(struct top *top)
{
	struct live_threads *threads = allocate(1, sizeof(*threads));

	threads->view.kind = &kind;
	threads->top = top;
	threads->generation = UINT64_MAX;
	top->chosen = 0;
	return &threads->view;
}
