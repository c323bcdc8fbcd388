/* The threads, and from each its own call tree. */
#include <curses.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "model/estimates.h"
#include "model/model.h"
#include "model/options.h"
#include "read/recording.h"
#include "screen/numbers.h"
#include "screen/terminal.h"
#include "screen/tui.h"
#include "screen/view.h"
#include "screen/views.h"
#include "text/numbers.h"

#define ID_WIDTH 8

struct threads {
	struct view view;
	struct tui *tui;
	uint32_t *order;
};

static const struct thread *sort_threads;

static double key_of(const struct thread *thread)
{
	return thread->self > 0 ? thread->self : (double)thread->calls / 1e9;
}

static int compare_threads(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	double first = key_of(&sort_threads[a]);
	double second = key_of(&sort_threads[b]);

	if (first != second)
		return first > second ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void draw_title(struct view *view, struct row *row)
{
	(void)view;
	row_text_as(row, "threads", LOOK_STRONG);
}

static void draw_columns(struct view *view, struct row *row)
{
	const struct model *model = ((struct threads *)view)->tui->model;

	row_number(row, "pid", ID_WIDTH);
	row_number(row, "tid", ID_WIDTH);
	row_number(row, counted_name(model), calls_width(model));
	row_number(row, "time", TIME_WIDTH);
	row_number(row, "lost", ID_WIDTH);
	row_text(row, "name");
}

static void draw_id(struct row *row, uint32_t id)
{
	char text[SHORT_TEXT];

	snprintf(text, sizeof(text), "%u", id);
	row_number(row, text, ID_WIDTH);
}

static void draw_row(struct view *view, uint32_t number, struct row *row)
{
	const struct threads *threads = (struct threads *)view;
	const struct model *model = threads->tui->model;
	const struct thread *thread = &model->threads[threads->order[number]];
	struct count count = count_of_thread(thread);
	bool known = thread->untimed < thread->calls || model->budget;
	char text[COUNT_TEXT];

	draw_id(row, model->recording->processes[thread->process].pid);
	draw_id(row, thread->tid);
	row_number(row, count_text(text, &count), calls_width(model));
	row_number(row,
		   time_text(text, model->raw ? thread->self_raw : thread->self,
			     known),
		   TIME_WIDTH);
	row_number(row, human_count(text, lost_sum(thread->lost)), ID_WIDTH);
	row_text(row, thread->name);
}

/* Threads are apart in a second model, with the same threads and functions. */
static void open_thread(struct screen *screen, struct threads *threads)
{
	struct tui *tui = threads->tui;
	const struct model *model = tui->model;
	uint32_t thread = threads->order[threads->view.list.chosen];

	if (!tui->threaded) {
		tui->threaded = allocate(1, sizeof(*tui->threaded));
		model_build(tui->threaded, model->recording, tui->options, true,
			    model->is_sampled);
	}
	if (thread >= tui->threaded->thread_count)
		return;
	screen_push(screen,
		    tui->views->tree(tui, tui->threaded,
				     tui->threaded->threads[thread].path,
				     false));
}

static bool do_key(struct screen *screen, struct view *view, int key)
{
	struct threads *threads = (struct threads *)view;

	if (!IS_ENTER(key) && key != KEY_RIGHT)
		return tui_key(screen, threads->tui, key);
	if (view->list.count)
		open_thread(screen, threads);
	return true;
}

static bool matches(struct view *view, uint32_t number, const char *text)
{
	const struct threads *threads = (struct threads *)view;

	return strcasestr(
		threads->tui->model->threads[threads->order[number]].name,
		text);
}

static void end(struct view *view)
{
	free(((struct threads *)view)->order);
	free(view);
}

static const struct view_kind kind = {
	.keys = " ? help  Enter its call tree  " TUI_KEYS,
	.help = "Enter     the call tree of the thread\n" TUI_HELP,
	.title = draw_title,
	.columns = draw_columns,
	.draw = draw_row,
	.key = do_key,
	.matches = matches,
	.end = end,
};

struct view *threads_view(struct tui *tui)
{
	struct threads *threads = allocate(1, sizeof(*threads));
	uint32_t i, count = tui->model->thread_count;

	threads->view.kind = &kind;
	threads->view.list.count = count;
	threads->tui = tui;
	threads->order = allocate(count, sizeof(*threads->order));
	for (i = 0; i < count; i++)
		threads->order[i] = i;
	sort_threads = tui->model->threads;
	if (count)
		qsort(threads->order, count, sizeof(*threads->order),
		      compare_threads);
	return &threads->view;
}
