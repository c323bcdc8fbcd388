/*
 * Prints a function's instructions, the lines of the source between them, and jumps
 * within the function as arrows.  A function that exists only inlined has no code of its
 * own.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/annotation.h"
#include "model/functions.h"
#include "model/hits.h"
#include "model/model.h"
#include "model/options.h"
#include "names/source.h"
#include "names/symbols.h"
#include "text/annotate_code.h"
#include "text/layout.h"
#include "text/table.h"

/* Arrows beside each other; a jump for which there is no room has its target only. */
#define LANES 4
/* Code without a symbol: what is shown after the last sample. */
#define BEYOND 32

struct place {
	const char *file; /* NULL: unknown */
	int line;
};

struct printing {
	const struct layout *layout;
	const struct annotation *annotation;
	const struct annotated *annotated;
	const struct function_symbol *symbols;
	size_t symbol_count;
	/* of the part that is being printed */
	struct instruction *code;
	uint32_t count;
	struct place *places;
	double *samples;
	bool *is_hook_site; /* see symbols_hook_sites() */
	char (*arrows)[LANES + 2];
};

static const struct column columns[] = {
	{ "share", 6 },	   { "samples", 8 }, { "", LANES + 1 },
	{ "address", 10 }, { NULL, 0 },
};

/* --- which code --- */

/* The function's symbol around an address, or NULL. */
static const struct function_symbol *
find_symbol(const struct printing *printing, uint64_t address)
{
	size_t low = 0, high = printing->symbol_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (printing->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address - printing->symbols[low - 1].address <
				       printing->symbols[low - 1].size ?
		       &printing->symbols[low - 1] :
		       NULL;
}

/* The part of the function's code with an address; the samples tell how long it is at
 * least. */
static void find_part(const struct printing *printing, uint64_t address,
		      uint64_t *begin, uint64_t *end)
{
	const struct function_symbol *symbol = find_symbol(printing, address);
	const struct hits *hits = &printing->annotated->hits;
	uint64_t start = printing->annotated->function->address;
	uint32_t i;

	*begin = symbol ? symbol->address : start <= address ? start : address;
	*end = symbol ? symbol->address + symbol->size : address + BEYOND;
	for (i = 0; !symbol && i < hits->instruction_count; i++)
		if (hits->instructions[i].address >= address)
			*end = hits->instructions[i].address + BEYOND;
}

/* --- the facts about each instruction --- */

/* (Of inlined functions, the innermost one comes last.) */
static void take_place(void *context, uint32_t number, const char *file,
		       int line)
{
	((struct place *)context)[number] = (struct place){ file, line };
}

static uint32_t find_instruction(const struct printing *printing,
				 uint64_t address)
{
	uint32_t low = 0, high = printing->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (printing->code[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : NONE;
}

/* A sample of a caller is in the middle of its call, and one of a histogram anywhere. */
static void place_samples(struct printing *printing, uint64_t end)
{
	const struct hits *hits = &printing->annotated->hits;
	uint32_t i, at;

	for (i = 0; i < hits->instruction_count; i++) {
		at = hits->instructions[i].address < end ?
			     find_instruction(printing,
					      hits->instructions[i].address) :
			     NONE;
		if (at != NONE)
			printing->samples[at] += hits->instructions[i].self;
	}
}

/* --- arrows --- */

struct jump {
	uint32_t from, to;
};

static uint32_t low_of(const struct jump *jump)
{
	return jump->from < jump->to ? jump->from : jump->to;
}

static uint32_t high_of(const struct jump *jump)
{
	return jump->from < jump->to ? jump->to : jump->from;
}

/* Short jumps are drawn first, next to the code. */
static int compare_jumps(const void *left, const void *right)
{
	const struct jump *a = left, *b = right;
	uint32_t length = high_of(a) - low_of(a);
	uint32_t other = high_of(b) - low_of(b);

	if (length != other)
		return length < other ? -1 : 1;
	return (a->from > b->from) - (a->from < b->from);
}

static bool lane_is_free(const struct printing *printing,
			 const struct jump *jump, int lane)
{
	uint32_t i;

	for (i = low_of(jump); i <= high_of(jump); i++)
		if (printing->arrows[i][lane] != ' ')
			return false;
	return true;
}

static void draw_end(char *row, int lane, bool is_target)
{
	int i;

	for (i = lane + 1; i < LANES; i++)
		if (row[i] == ' ')
			row[i] = '-';
	row[LANES] = is_target || row[LANES] == '>' ? '>' : '-';
	row[lane] = '+';
}

/* The longest way that an arrow is drawn: a longer one says nothing to the eye. */
#define WAY_MOST 4096

static void draw(struct printing *printing, const struct jump *jump)
{
	uint32_t i;
	int lane;

	if (high_of(jump) - low_of(jump) > WAY_MOST)
		return;
	for (lane = LANES - 1; lane >= 0; lane--)
		if (lane_is_free(printing, jump, lane))
			break;
	if (lane < 0)
		return;
	for (i = low_of(jump) + 1; i < high_of(jump); i++)
		printing->arrows[i][lane] = '|';
	draw_end(printing->arrows[jump->from], lane, false);
	draw_end(printing->arrows[jump->to], lane, true);
}

static void draw_jumps(struct printing *printing)
{
	struct jump *jumps = allocate(printing->count + 1, sizeof(*jumps));
	uint32_t i, to, count = 0;

	for (i = 0; i < printing->count; i++) {
		memset(printing->arrows[i], ' ', LANES + 1);
		to = printing->code[i].text[0] == 'j' ?
			     find_instruction(printing,
					      printing->code[i].target) :
			     NONE;
		if (to != NONE && to != i &&
		    printing->code[to].address == printing->code[i].target)
			jumps[count++] = (struct jump){ i, to };
	}
	qsort(jumps, count, sizeof(*jumps), compare_jumps);
	for (i = 0; i < count; i++)
		draw(printing, &jumps[i]);
	free(jumps);
}

/* --- rows --- */

static void put_line(const struct printing *printing, const struct place *place)
{
	FILE *out = printing->layout->out;
	const struct source_file *source;
	const char *text;

	if (!place->file)
		return;
	source = source_find(place->file, printing->annotation->places,
			     printing->annotated->function->object);
	text = source_line(source, place->line);
	fprintf(out, "%*s%s", 19, "", printing->layout->color ? "\033[2m" : "");
	put_text(out, base_name(place->file));
	fprintf(out, ":%d", place->line);
	while (text && (*text == ' ' || *text == '\t'))
		text++;
	if (text && *text) {
		fputs("  ", out);
		put_text(out, text);
	}
	fputs(printing->layout->color ? "\033[m\n" : "\n", out);
}

/* "callq 0x1040" is "callq 0x1040 <puts>". */
static const char *text_of(const struct printing *printing,
			   const struct instruction *instruction)
{
	const struct function_symbol *symbol =
		instruction->target ?
			find_symbol(printing, instruction->target) :
			NULL;
	uint64_t offset = symbol ? instruction->target - symbol->address : 0;

	if (!symbol)
		return instruction->text;
	return offset ? keep_format("%s <%s+0x%" PRIx64 ">", instruction->text,
				    symbol->name, offset) :
			keep_format("%s <%s>", instruction->text, symbol->name);
}

static void put_instruction(const struct printing *printing,
			    struct table *table, uint32_t i)
{
	double self = printing->samples[i],
	       all = printing->annotated->hits.code;
	double share = all > 0 ? 100 * self / all : 0;
	const char *color = !printing->layout->color ? NULL :
			    share >= 20		     ? "\033[1;31m" :
			    share >= 5		     ? "\033[33m" :
						       NULL;
	char text[SHORT_TEXT];

	if (color)
		table_color(table, color);
	snprintf(text, sizeof(text), "%.2f", share);
	table_cell(table, self > 0 ? text : "");
	table_cell(table, self > 0 ? human_count(text, whole(self)) : "");
	if (color)
		table_no_color(table);
	table_cell(table, printing->arrows[i]);
	snprintf(text, sizeof(text), "%" PRIx64, printing->code[i].address);
	table_cell(table, text);
	table_text(table, printing->is_hook_site[i] ?
				  keep_format("%s ; for a hook",
					      printing->code[i].text) :
				  text_of(printing, &printing->code[i]));
}

static bool is_same(const struct place *a, const struct place *b)
{
	return a->line == b->line && a->file && b->file &&
	       !strcmp(a->file, b->file);
}

/* By instruction: whether it is at most @context rows from one with samples. */
static bool *find_shown(const struct printing *printing, uint32_t context)
{
	bool *shown = allocate(printing->count + 1, sizeof(*shown));
	uint32_t i, since = NONE;

	for (i = 0; i < printing->count; i++) {
		since = printing->samples[i] > 0 ? 0 :
			since == NONE		 ? NONE :
						   since + 1;
		shown[i] = since != NONE && since <= context;
	}
	since = NONE;
	for (i = printing->count; i-- > 0;) {
		since = printing->samples[i] > 0 ? 0 :
			since == NONE		 ? NONE :
						   since + 1;
		shown[i] |= since != NONE && since <= context;
	}
	return shown;
}

static void put_rows(const struct printing *printing)
{
	struct table table = table_begin(printing->layout, columns);
	const struct place none = { NULL, 0 }, *last = &none;
	bool *shown = find_shown(printing,
				 (uint32_t)printing->layout->options->context);
	bool is_gap = false;
	uint32_t i;

	table_titles(&table, NULL);
	for (i = 0; i < printing->count; i++) {
		if (!shown[i]) {
			is_gap = true;
			continue;
		}
		if (is_gap)
			fputs("...\n", printing->layout->out);
		if (is_gap || !is_same(last, &printing->places[i]))
			put_line(printing, &printing->places[i]);
		is_gap = false;
		last = &printing->places[i];
		put_instruction(printing, &table, i);
	}
	if (is_gap)
		fputs("...\n", printing->layout->out);
	free(shown);
}

/* --- parts --- */

static void say_no_code(const struct printing *printing, uint64_t begin,
			enum symbols_code why)
{
	FILE *out = printing->layout->out;

	fprintf(out, "\nthe code at 0x%" PRIx64 " cannot be shown: ", begin);
	fputs(why == CODE_NO_READER ? "shim was built without Zydis\n" :
				      "no file has it for x86-64\n",
	      out);
}

/* Returns the end of the part. */
static uint64_t put_part(struct printing *printing, uint64_t address)
{
	struct object *object = printing->annotated->function->object;
	uint64_t begin, end, *addresses;
	enum symbols_code result;
	uint32_t i;

	find_part(printing, address, &begin, &end);
	result = symbols_code(object, begin, end, &printing->code,
			      &printing->count);
	if (result != CODE_READ) {
		say_no_code(printing, begin, result);
		return end;
	}
	addresses = allocate(printing->count, sizeof(*addresses));
	for (i = 0; i < printing->count; i++)
		addresses[i] = printing->code[i].address;
	printing->places = allocate(printing->count, sizeof(*printing->places));
	printing->samples = allocate(printing->count, sizeof(double));
	printing->arrows = allocate(printing->count, sizeof(*printing->arrows));
	symbols_places(object, addresses, printing->count, take_place,
		       printing->places);
	printing->is_hook_site = allocate(printing->count,
					  sizeof(*printing->is_hook_site));
	symbols_hook_sites(object, addresses, printing->count,
			   printing->is_hook_site);
	place_samples(printing, end);
	draw_jumps(printing);
	fprintf(printing->layout->out,
		"\ncode from 0x%" PRIx64 " to 0x%" PRIx64 "\n", begin, end);
	put_rows(printing);
	free(addresses);
	free(printing->places);
	free(printing->is_hook_site);
	free(printing->samples);
	free(printing->arrows);
	free(printing->code);
	return end;
}

static void say_no_own_code(const struct printing *printing)
{
	if (!printing->annotated->function->object)
		return;
	fputs(printing->annotated->function->is_inlined ?
		      "\nit is inlined everywhere: its instructions are those "
		      "of its callers\n" :
		      "\nno sample is in its own code\n",
	      printing->layout->out);
}

void annotate_code_print(const struct layout *layout,
			 const struct annotation *annotation,
			 const struct annotated *annotated)
{
	struct printing printing = { .layout = layout,
				     .annotation = annotation,
				     .annotated = annotated };
	const struct hits *hits = &annotated->hits;
	struct function_symbol *symbols = NULL;
	uint64_t end = 0;
	uint32_t i;

	if (!annotated->function->object || hits->instruction_count == 0) {
		say_no_own_code(&printing);
		return;
	}
	symbols = symbols_list(annotated->function->object,
			       &printing.symbol_count);
	printing.symbols = symbols;
	for (i = 0; i < hits->instruction_count; i++)
		if (hits->instructions[i].address >= end)
			end = put_part(&printing,
				       hits->instructions[i].address);
	free(symbols);
}
