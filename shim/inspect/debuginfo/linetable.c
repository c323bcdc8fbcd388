/*
 * Reads line tables.  Rows come in sequences, each for one piece of code.  A sequence
 * is valid if the image's code contains all of it.  Sequences of code that the linker
 * has discarded begin at 0 or end outside.  Several sequences may describe the same
 * code (inline functions of C++, of which the linker keeps one); these must agree about
 * the starts of instructions.
 */
#define _GNU_SOURCE
#include "inspect/debuginfo/linetable.h"

#include "inspect/debuginfo/file.h"
#include "inspect/debuginfo/line_header.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* --- rows --- */

struct sequence {
	uint64_t start, end;
	size_t first, count; /* of rows */
	bool is_dropped;
};

static struct line_list rows;	   /* of struct debuginfo_row */
static struct line_list sequences; /* of struct sequence */

struct machine {
	const struct debuginfo_question *question;
	uint64_t address, file, line, column;
	bool is_statement;
	bool is_odd; /* the sequence's addresses do not ascend */
	bool has_begun;
	uint64_t start;
	size_t first;
};

static void reset(struct machine *machine, const struct line_unit *unit)
{
	machine->address = 0;
	machine->file = machine->line = 1;
	machine->column = 0;
	machine->is_statement = unit->is_statement;
	machine->is_odd = machine->has_begun = false;
	machine->first = rows.count;
}

static bool is_code(const struct debuginfo_question *question, uint64_t start,
		    uint64_t end)
{
	for (uint32_t i = 0; i < question->range_count; i++) {
		const struct debuginfo_range *range = &question->ranges[i];

		if (start >= range->start && end > start &&
		    end - range->start <= range->size)
			return true;
	}
	return false;
}

static bool end_sequence(struct machine *machine)
{
	struct debuginfo_row *all = rows.items;
	struct sequence *sequence;

	/* Rows at the end of the sequence have no code. */
	while (rows.count > machine->first &&
	       all[rows.count - 1].address >= machine->address)
		rows.count--;
	if (machine->is_odd || !machine->has_begun ||
	    !is_code(machine->question, machine->start, machine->address) ||
	    rows.count == machine->first) {
		rows.count = machine->first;
		return true;
	}
	sequence = line_add_items(&sequences, sizeof(*sequence), 1);
	if (sequence)
		*sequence = (struct sequence){
			.start = machine->start,
			.end = machine->address,
			.first = machine->first,
			.count = rows.count - machine->first,
		};
	return sequence != NULL;
}

/* Ends the code of the last line with a row of line 0. */
static bool add_end(const struct machine *machine,
		    const struct debuginfo_row *last)
{
	struct debuginfo_row *item;

	if (!last || last->line == 0 || last->address == machine->address)
		return true;
	item = line_add_items(&rows, sizeof(*item), 1);
	if (item)
		*item = (struct debuginfo_row){ .address = machine->address };
	return item != NULL;
}

static bool add_row(struct machine *machine)
{
	const struct debuginfo_row *last =
		rows.count > machine->first ?
			(struct debuginfo_row *)rows.items + rows.count - 1 :
			NULL;
	struct debuginfo_row row = { .address = machine->address };
	struct debuginfo_row *item;

	if (!machine->has_begun) {
		machine->has_begun = true;
		machine->start = machine->address;
	}
	if (machine->line == 0)
		return add_end(machine, last);
	if (!machine->is_statement || machine->line > INT32_MAX)
		return true;
	row.line = (uint32_t)machine->line;
	row.file = line_file_number(machine->file);
	row.column = machine->column < 65535 ? (uint16_t)machine->column :
					       65535;
	if (row.file == UINT32_MAX)
		return true;
	if (last && last->address == row.address && last->line == row.line &&
	    last->file == row.file)
		return true;
	if (last && last->address == row.address && last->line == 0)
		rows.count--;
	item = line_add_items(&rows, sizeof(*item), 1);
	if (item)
		*item = row;
	return item != NULL;
}

static void advance(struct machine *machine, uint64_t by)
{
	if (machine->address + by < machine->address)
		machine->is_odd = true;
	machine->address += by;
}

static bool run_extended(struct machine *machine, const struct line_unit *unit,
			 struct line_bytes *in)
{
	uint64_t size = line_read_unsigned(in);
	struct line_bytes unit_bytes = *in;
	uint64_t address;

	line_skip(in, size);
	unit_bytes.end = in->at;
	switch (line_read_fixed(&unit_bytes, 1)) {
	case DW_LNE_end_sequence:
		if (!end_sequence(machine))
			return false;
		reset(machine, unit);
		break;
	case DW_LNE_set_address:
		address = line_read_fixed(&unit_bytes, 8);
		if (machine->has_begun && address < machine->address)
			machine->is_odd = true;
		machine->address = address;
		break;
	case DW_LNE_define_file: machine->is_odd = true; break;
	}
	return true;
}

static bool run_standard(struct machine *machine, const struct line_unit *unit,
			 struct line_bytes *in, unsigned opcode)
{
	switch (opcode) {
	case DW_LNS_copy: return add_row(machine);
	case DW_LNS_advance_pc:
		advance(machine, line_read_unsigned(in) * unit->minimum_length);
		break;
	case DW_LNS_advance_line:
		machine->line += (uint64_t)line_read_signed(in);
		break;
	case DW_LNS_set_file: machine->file = line_read_unsigned(in); break;
	case DW_LNS_set_column: machine->column = line_read_unsigned(in); break;
	case DW_LNS_negate_stmt:
		machine->is_statement = !machine->is_statement;
		break;
	case DW_LNS_const_add_pc:
		advance(machine, (255u - unit->opcode_base) / unit->line_range *
					 unit->minimum_length);
		break;
	case DW_LNS_fixed_advance_pc:
		advance(machine, line_read_fixed(in, 2));
		break;
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin: break;
	default:
		for (unsigned i = 0; i < unit->lengths[opcode]; i++)
			line_read_unsigned(in);
	}
	return true;
}

static bool run_special(struct machine *machine, const struct line_unit *unit,
			unsigned opcode)
{
	unsigned adjusted = opcode - unit->opcode_base;

	advance(machine, adjusted / unit->line_range * unit->minimum_length);
	machine->line += (uint64_t)(int64_t)(unit->line_base +
					     (int)(adjusted %
						   unit->line_range));
	return add_row(machine);
}

/* Runs the line program of a unit.  False without memory. */
static bool run_program(const struct debuginfo_question *question,
			const struct line_unit *unit)
{
	struct line_bytes in = { unit->program, unit->end, false };
	struct machine machine = { .question = question };
	bool goes_on = true;

	reset(&machine, unit);
	while (goes_on && in.at < in.end && !in.is_bad) {
		unsigned opcode = (unsigned)line_read_fixed(&in, 1);

		if (opcode >= unit->opcode_base)
			goes_on = run_special(&machine, unit, opcode);
		else if (opcode == 0)
			goes_on = run_extended(&machine, unit, &in);
		else
			goes_on = run_standard(&machine, unit, &in, opcode);
	}
	/* A sequence without an end is invalid. */
	rows.count = machine.first;
	return goes_on;
}

/* Reads all units.  False without memory. */
static bool read_units(const struct debuginfo_question *question,
		       struct line_unit *unit)
{
	const unsigned char *begin = unit->line.at;
	struct line_bytes in = unit->line;

	while (in.at < in.end && !in.is_bad) {
		struct line_bytes unit_bytes = in;
		uint64_t size;

		unit->offset = (uint64_t)(in.at - begin);
		size = line_read_fixed(&unit_bytes, 4);
		unit->offset_size = size == 0xffffffff ? 8 : 4;
		if (unit->offset_size == 8)
			size = line_read_fixed(&unit_bytes, 8);
		if (unit_bytes.is_bad ||
		    size > (uint64_t)(unit_bytes.end - unit_bytes.at))
			break;
		unit_bytes.end = unit_bytes.at + size;
		unit->end = in.at = unit_bytes.end;
		if (line_read_header(unit, &unit_bytes) &&
		    !run_program(question, unit))
			return false;
	}
	return true;
}

/* --- sequences that describe the same code --- */

static int by_start(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

/* Whether instructions start at the same addresses in both. */
static bool have_same_starts(const struct sequence *a, const struct sequence *b)
{
	const struct debuginfo_row *all = rows.items;
	size_t i = 0, k = 0;

	if (a->start != b->start || a->end != b->end)
		return false;
	while (i < a->count && k < b->count) {
		uint64_t address = all[a->first + i].address;

		if (all[b->first + k].address != address)
			return false;
		while (i < a->count && all[a->first + i].address == address)
			i++;
		while (k < b->count && all[b->first + k].address == address)
			k++;
	}
	return i == a->count && k == b->count;
}

static uint64_t drop_contradictions(void)
{
	struct sequence *all = sequences.items, *last = NULL;
	uint64_t dropped = 0;

	for (size_t i = 0; i < sequences.count; i++) {
		struct sequence *now = &all[i];

		if (!last || now->start >= last->end) {
			last = now;
			continue;
		}
		now->is_dropped = true;
		if (have_same_starts(last, now))
			continue;
		dropped += now->count;
		if (!last->is_dropped)
			dropped += last->count;
		last->is_dropped = true;
		if (now->end > last->end)
			last = now;
	}
	return dropped;
}

/* The rows of the valid sequences, by address. */
static struct line_list sorted; /* of struct debuginfo_row */

static bool sort_rows(void)
{
	const struct sequence *all = sequences.items;

	sorted.count = 0;
	for (size_t i = 0; i < sequences.count; i++) {
		void *to;

		if (all[i].is_dropped)
			continue;
		to = line_add_items(&sorted, sizeof(struct debuginfo_row),
				    all[i].count);
		if (!to)
			return false;
		memcpy(to, (struct debuginfo_row *)rows.items + all[i].first,
		       all[i].count * sizeof(struct debuginfo_row));
	}
	return true;
}

/* --- reading an image --- */

/* Empties the lists, and keeps their memory. */
static void empty_lists(void)
{
	rows.count = sequences.count = 0;
	line_names_empty();
}

void linetable_forget(void)
{
	struct line_list *lists[] = { &rows, &sequences, &sorted };

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		*lists[i] = (struct line_list){ NULL, 0, 0 };
	line_header_forget();
}

static void free_lists(void)
{
	struct line_list *lists[] = { &rows, &sequences };

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		free(lists[i]->items);
		*lists[i] = (struct line_list){ NULL, 0, 0 };
	}
	line_header_free();
}

static int read_tables(const struct debuginfo_question *question, Dwarf *dwarf,
		       Elf *elf, struct debuginfo_lines *lines)
{
	struct line_unit unit = { .offset = 0 };

	empty_lists();
	if (!line_find_section(elf, ".debug_line", &unit.line))
		return -ENOENT;
	line_find_section(elf, ".debug_line_str", &unit.line_strings);
	line_find_section(elf, ".debug_str", &unit.strings);
	if (!line_read_directories(dwarf) || !read_units(question, &unit))
		return -ENOMEM;
	if (sequences.count > 0)
		qsort(sequences.items, sequences.count, sizeof(struct sequence),
		      by_start);
	lines->dropped = drop_contradictions();
	return sort_rows() ? 0 : -ENOMEM;
}

int linetable_read(const struct debuginfo_question *question,
		   struct debuginfo_answer *answer)
{
	static struct debuginfo_lines lines;
	Dwarf *dwarf = file_open(question, answer);
	int r;

	if (!dwarf)
		return -ENOENT;
	r = read_tables(question, dwarf, file_elf(question), &lines);
	free_lists();
	if (r < 0)
		return r;
	lines.rows = sorted.items;
	lines.row_count = sorted.count;
	line_names(&lines);
	answer->data = &lines;
	answer->count = sorted.count;
	return sorted.count ? 0 : -ENOENT;
}
