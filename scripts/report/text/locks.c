/* Prints the table of locks, and below each lock the paths that waited for it
 * and the paths that held it. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"
#include "base/text.h"
#include "model/locks.h"
#include "text/locks.h"
#include "text/layout.h"
#include "text/path.h"
#include "text/table.h"

#define WAITERS 5 /* limit of waiting paths shown for a lock */

static void print_waits(struct table *table, const struct waits *waits,
			size_t indent)
{
	double mean = waits->time / (double)waits->waits;
	char text[SHORT_TEXT];

	table_cell(table, human_ns(text, waits->time));
	table_cell(table, human_count(text, waits->waits));
	table_cell(table, waits->waits ? human_ns(text, mean) : "-");
	table_cell(table, waits->waits ? human_ns(text, waits->max) : "-");
	table_cell(table, human_count(text, waits->failures));
	table_cell(table, human_count(text, waits->refusals));
	table_rest(table, indent);
}

static void print_waiter(struct table *table, const struct waiter *waiter,
			 bool has_owner)
{
	const struct layout *layout = table->layout;

	print_waits(table, &waiter->waits, 2);
	fputs("in ", layout->out);
	path_print(layout, waiter->path, table->used + strlen("in "));
	if (waiter->waits.open)
		fprintf(layout->out, "; %" PRIu64 " to the end",
			waiter->waits.open);
	table_end_row(table);
	if (!waiter->waits.waits || !has_owner)
		return;
	table_rest(table, 3);
	fputs("its holder in ", layout->out);
	path_print(layout, waiter->holder,
		   table->used + strlen("its holder in "));
	table_end_row(table);
}

static void print_lock(struct table *table, const struct lock *lock)
{
	const struct layout *layout = table->layout;
	const struct waiter *waiters =
		&layout->model->locks->waiters[lock->first];
	char text[SHORT_TEXT];
	uint32_t i;

	print_waits(table, &lock->waits, 0);
	fprintf(layout->out, "%s ", lock_kinds[lock->kind]);
	if (lock->name)
		put_text(layout->out, lock->name);
	else
		fprintf(layout->out, "at 0x%" PRIx64, lock->address);
	table_end_row(table);
	for (i = 0;
	     i < lock->count && (i < WAITERS || layout->options->limit == 0);
	     i++)
		print_waiter(table, &waiters[i], lock->kind < LOCK_CONDITION);
	if (i == lock->count)
		return;
	table_rest(table, 1);
	fprintf(layout->out, "... %s more", human_count(text, lock->count - i));
	table_end_row(table);
}

static void print_head(const struct layout *layout)
{
	const struct locks *locks = layout->model->locks;
	const char *comma = " (";
	char time[SHORT_TEXT], count[SHORT_TEXT];
	uint32_t i;

	fprintf(layout->out, "  %s waited for locks, in %s wait%s",
		human_ns(time, locks->all.time),
		human_count(count, locks->all.waits),
		locks->all.waits == 1 ? "" : "s");
	for (i = 0; i < LOCK_KINDS; i++) {
		if (!locks->by_kind[i].waits)
			continue;
		fprintf(layout->out, "%s%s %s", comma, lock_kinds[i],
			human_ns(time, locks->by_kind[i].time));
		comma = ", ";
	}
	fprintf(layout->out, "%s\n", locks->all.waits ? ")" : "");
	if (locks->all.failures)
		fprintf(layout->out, "  %s of them ended without the lock\n",
			human_count(count, locks->all.failures));
	if (locks->all.refusals)
		fprintf(layout->out, "  refused at once: %s\n",
			human_count(count, locks->all.refusals));
	if (locks->all.open)
		fprintf(layout->out, "  not over at the end: %s\n",
			human_count(count, locks->all.open));
}

void locks_print(const struct layout *layout)
{
	static const struct column columns[] = {
		{ "waited", 10 }, { "waits", 10 }, { "mean", 10 },
		{ "max", 10 },	  { "failed", 8 }, { "refused", 8 },
		{ "lock", 0 },
	};
	struct table table = table_begin(layout, columns);
	const struct locks *locks = layout->model->locks;
	uint32_t i, rows = layout_rows(layout, 30, locks->lock_count);

	print_head(layout);
	if (!locks->lock_count)
		return;
	fputc('\n', layout->out);
	table_titles(&table, "  (by waited; conditions last)");
	for (i = 0; i < rows; i++)
		print_lock(&table, &locks->locks[i]);
	layout_left_out(layout, rows, locks->lock_count);
}
