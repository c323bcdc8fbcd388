/*
 * Prints report --messages: the sums, a table of who was late, and one of the ranks.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "base/numbers.h"
#include "model/late_ranks.h"
#include "text/layout.h"
#include "text/messages.h"
#include "text/table.h"

#define ROWS 30

static double sum_waited(const struct late_ranks *ranks)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < ranks->recording.process_count; i++)
		sum += ranks->processes[i].waited_ns;
	return sum;
}

static struct message_sums sum_all(const struct late_ranks *ranks)
{
	struct message_sums all = { .sends = 0 };
	uint32_t i;

	for (i = 0; i < ranks->recording.process_count; i++) {
		const struct message_sums *sums = &ranks->messages->sums[i];

		all.sends += sums->sends;
		all.sent += sums->sent;
		all.collectives += sums->collectives;
		all.given += sums->given;
		all.taken += sums->taken;
		for (int k = 0; k < SHIM_TRANSFERS; k++) {
			all.transfers[k].count += sums->transfers[k].count;
			all.transfers[k].given += sums->transfers[k].given;
			all.transfers[k].taken += sums->transfers[k].taken;
		}
	}
	return all;
}

static void print_sums(FILE *out, const struct late_ranks *ranks)
{
	const struct messages *messages = ranks->messages;
	struct message_sums all = sum_all(ranks);
	char first[SHORT_TEXT], second[SHORT_TEXT], third[SHORT_TEXT];

	fprintf(out, "  messages: %s sent, %s;", human_count(first, all.sends),
		human_bytes(second, all.sent));
	fprintf(out,
		" parts in collective operations: %s, %s given, %s taken\n",
		human_count(first, all.collectives),
		human_bytes(second, all.given), human_bytes(third, all.taken));
	for (int i = 0; i < SHIM_TRANSFERS; i++)
		if (all.transfers[i].count)
			fprintf(out, "  %s: %s, %s given, %s taken\n",
				trace_transfer_name(i),
				human_count(first, all.transfers[i].count),
				human_bytes(second, all.transfers[i].given),
				human_bytes(third, all.transfers[i].taken));
	fprintf(out, "  waiting for other ranks: %s of all ranks together\n",
		human_ns(first, sum_waited(ranks)));
	if (messages->lone_sends)
		fprintf(out,
			"  %s messages were sent, and no rank has "
			"received them\n",
			human_count(first, messages->lone_sends));
	if (messages->lone_receives)
		fprintf(out,
			"  %s messages were received, and no rank has "
			"sent them\n",
			human_count(first, messages->lone_receives));
	if (messages->reversed)
		fprintf(out,
			"  %s messages were there up to %s before they "
			"were sent: so far are the clocks apart\n",
			human_count(first, messages->reversed),
			human_ns(second, messages->reversed_ns));
}

void messages_print(FILE *out, struct late_ranks *ranks,
		    const struct options *options)
{
	static const struct column columns[] = { { "waited", 10 },
						 { "times", 11 },
						 { "for", -12 },
						 { "which", -15 },
						 { "in", 0 } };
	struct layout layout = layout_on(out, options, &ranks->model);
	struct table table = table_begin(&layout, columns);
	uint32_t i, rows = layout_rows(&layout, ROWS, ranks->count);
	char text[SHORT_TEXT];

	print_sums(out, ranks);
	if (!ranks->count)
		return;
	fputc('\n', out);
	table_titles(&table, "  (by waited)");
	for (i = 0; i < rows; i++) {
		const struct late_rank *late = &ranks->all[i];

		table_cell(&table, human_ns(text, late->waited_ns));
		table_cell(&table, human_count(text, late->times));
		table_cell_cut(&table, late_rank_name(ranks, late->late));
		table_cell(&table, late_reason(late->kind));
		table_name(&table, &ranks->model.functions[late->function]);
	}
	layout_left_out(&layout, rows, ranks->count);
}

void messages_print_ranks(FILE *out, struct late_ranks *ranks,
			  const struct options *options)
{
	static const struct column columns[] = {
		{ "sent", 11 },	 { "bytes", 10 },  { "received", 11 },
		{ "bytes", 10 }, { "waited", 10 }, { "awaited", 10 },
		{ "rank", 0 },
	};
	struct layout layout = layout_on(out, options, &ranks->model);
	struct table table = table_begin(&layout, columns);
	uint32_t i, count = ranks->recording.process_count;
	uint32_t rows = layout_rows(&layout, ROWS, count);
	char text[SHORT_TEXT];

	fputc('\n', out);
	table_titles(&table, NULL);
	for (i = 0; i < rows; i++) {
		const struct message_sums *sums = &ranks->messages->sums[i];
		const struct rank_waits *waits = &ranks->processes[i];

		table_cell(&table, human_count(text, sums->sends));
		table_cell(&table, human_bytes(text, sums->sent));
		table_cell(&table, human_count(text, sums->receives));
		table_cell(&table, human_bytes(text, sums->received));
		table_cell(&table, human_ns(text, waits->waited_ns));
		table_cell(&table, human_ns(text, waits->awaited_ns));
		table_rest(&table, 0);
		table_text(&table, late_rank_name(ranks, i));
	}
	layout_left_out(&layout, rows, count);
}
