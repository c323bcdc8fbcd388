/* The table of locks, and below each lock who waited for it and who held it. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/numbers.h"
#include "base/text.h"
#include "model/locks.h"
#include "text/locks.h"
#include "text/page.h"
#include "text/path.h"

#define WAITERS 5  /* shown of a lock */
#define INDENT	66 /* of what is about them */

static void print_waits(const struct page *page, const struct waits *waits)
{
	char text[5][SHORT_TEXT];

	fprintf(page->out, "%10s %10s %10s %10s %8s %8s  ",
		human_ns(text[0], waits->time),
		human_count(text[1], waits->waits),
		waits->waits ?
			human_ns(text[2], waits->time / (double)waits->waits) :
			"-",
		waits->waits ? human_ns(text[3], waits->max) : "-",
		human_count(text[4], waits->failures),
		human_count((char[SHORT_TEXT]){ 0 }, waits->refusals));
}

static void print_waiter(const struct page *page, const struct waiter *waiter,
			 bool has_owner)
{
	print_waits(page, &waiter->waits);
	fputs("  in ", page->out);
	path_print(page, waiter->path);
	if (waiter->waits.open)
		fprintf(page->out, "; %" PRIu64 " to the end",
			waiter->waits.open);
	fputc('\n', page->out);
	if (!waiter->waits.waits || !has_owner)
		return;
	fprintf(page->out, "%*sits holder in ", INDENT, "");
	path_print(page, waiter->holder);
	fputc('\n', page->out);
}

static void print_lock(const struct page *page, const struct lock *lock)
{
	const struct waiter *waiters =
		&page->model->locks->waiters[lock->first];
	char text[SHORT_TEXT];
	uint32_t i;

	print_waits(page, &lock->waits);
	fprintf(page->out, "%s ", lock_kinds[lock->kind]);
	if (lock->name)
		put_text(page->out, lock->name);
	else
		fprintf(page->out, "at 0x%" PRIx64, lock->address);
	fputc('\n', page->out);
	for (i = 0;
	     i < lock->count && (i < WAITERS || page->options->limit == 0); i++)
		print_waiter(page, &waiters[i], lock->kind < LOCK_CONDITION);
	if (i < lock->count)
		fprintf(page->out, "%*s... %s more\n", INDENT - 2, "",
			human_count(text, lock->count - i));
}

static void print_head(const struct page *page)
{
	const struct locks *locks = page->model->locks;
	const char *comma = " (";
	char time[SHORT_TEXT], count[SHORT_TEXT];
	uint32_t i;

	fprintf(page->out, "  %s waited for locks, in %s wait%s",
		human_ns(time, locks->all.time),
		human_count(count, locks->all.waits),
		locks->all.waits == 1 ? "" : "s");
	for (i = 0; i < LOCK_KINDS; i++) {
		if (!locks->by_kind[i].waits)
			continue;
		fprintf(page->out, "%s%s %s", comma, lock_kinds[i],
			human_ns(time, locks->by_kind[i].time));
		comma = ", ";
	}
	fprintf(page->out, "%s\n", locks->all.waits ? ")" : "");
	if (locks->all.failures)
		fprintf(page->out, "  %s of them ended without the lock\n",
			human_count(count, locks->all.failures));
	if (locks->all.refusals)
		fprintf(page->out, "  refused at once: %s\n",
			human_count(count, locks->all.refusals));
	if (locks->all.open)
		fprintf(page->out, "  not over at the end: %s\n",
			human_count(count, locks->all.open));
}

void locks_print(const struct page *page)
{
	const struct locks *locks = page->model->locks;
	uint32_t i, rows = page_rows(page, 30, locks->lock_count);

	print_head(page);
	if (!locks->lock_count)
		return;
	fprintf(page->out,
		"\n%s%10s %10s %10s %10s %8s %8s  lock%s  (by "
		"waited; conditions last)\n",
		page->color ? "\033[1m" : "", "waited", "waits", "mean", "max",
		"failed", "refused", page->color ? "\033[m" : "");
	for (i = 0; i < rows; i++)
		print_lock(page, &locks->locks[i]);
	page_left_out(page, rows, locks->lock_count);
}
