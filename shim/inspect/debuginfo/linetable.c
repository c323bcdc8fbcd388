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

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* --- lists that grow --- */

struct list {
	void *items;
	size_t count, room;
};

static void *add_items(struct list *list, size_t size, size_t many)
{
	if (list->count + many > list->room) {
		size_t room = list->room ? list->room * 2 : 1024;
		void *larger;

		while (room < list->count + many)
			room *= 2;
		larger = realloc(list->items, room * size);
		if (!larger)
			return NULL;
		list->items = larger;
		list->room = room;
	}
	list->count += many;
	return (char *)list->items + (list->count - many) * size;
}

/* --- sections --- */

struct bytes {
	const unsigned char *at, *end;
	bool is_bad; /* a read went beyond the end */
};

static bool find_section(Elf *elf, const char *wanted, struct bytes *bytes)
{
	Elf_Scn *section = NULL;
	size_t names;

	*bytes = (struct bytes){ NULL, NULL, true };
	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strcmp(name, wanted) != 0)
			continue;
		/* libdw has decompressed the section. */
		data = elf_rawdata(section, NULL);
		if (!data || !data->d_buf || (header.sh_flags & SHF_COMPRESSED))
			return false;
		bytes->at = data->d_buf;
		bytes->end = bytes->at + data->d_size;
		bytes->is_bad = false;
		return true;
	}
	return false;
}

static uint64_t read_fixed(struct bytes *in, unsigned size)
{
	uint64_t value = 0;

	if ((size_t)(in->end - in->at) < size) {
		in->is_bad = true;
		in->at = in->end;
		return 0;
	}
	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)in->at[i] << 8 * i;
	in->at += size;
	return value;
}

static uint64_t read_unsigned(struct bytes *in)
{
	uint64_t value = 0;
	unsigned shift = 0;

	while (in->at < in->end) {
		unsigned char byte = *in->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80))
			return value;
	}
	in->is_bad = true;
	return 0;
}

static int64_t read_signed(struct bytes *in)
{
	const unsigned char *first = in->at;
	uint64_t value = read_unsigned(in);
	unsigned bits = 7 * (unsigned)(in->at - first);

	if (!in->is_bad && bits < 64 && (in->at[-1] & 0x40))
		value |= ~0ull << bits;
	return (int64_t)value;
}

static const char *read_string(struct bytes *in)
{
	const char *text = (const char *)in->at;
	const unsigned char *end = memchr(in->at, 0,
					  (size_t)(in->end - in->at));

	if (!end) {
		in->is_bad = true;
		in->at = in->end;
		return "";
	}
	in->at = end + 1;
	return text;
}

static const char *string_at(const struct bytes *section, uint64_t offset)
{
	struct bytes in = *section;

	if (offset >= (uint64_t)(in.end - in.at))
		return "?";
	in.at += offset;
	return read_string(&in);
}

static void skip(struct bytes *in, uint64_t size)
{
	if (size > (uint64_t)(in->end - in->at)) {
		in->is_bad = true;
		in->at = in->end;
	} else {
		in->at += size;
	}
}

/* --- names of files, each stored once --- */

static struct list names;	/* of char */
static struct list name_places; /* of uint32_t: the start of each name */
static uint32_t *name_slots;	/* number + 1 */
static size_t name_slots_mask;

static uint64_t hash_name(const char *text)
{
	uint64_t hash = 14695981039346656037ull;

	while (*text)
		hash = (hash ^ (unsigned char)*text++) * 1099511628211ull;
	return hash ^ hash >> 29;
}

static const char *name_at(uint32_t number)
{
	return (const char *)names.items +
	       ((const uint32_t *)name_places.items)[number];
}

static bool make_slots(void)
{
	size_t size = name_slots ? (name_slots_mask + 1) * 2 : 256;
	uint32_t *larger = calloc(size, sizeof(*larger));

	if (!larger)
		return false;
	for (uint32_t i = 0; i < name_places.count; i++) {
		uint64_t slot = hash_name(name_at(i));

		while (larger[slot & (size - 1)])
			slot++;
		larger[slot & (size - 1)] = i + 1;
	}
	free(name_slots);
	name_slots = larger;
	name_slots_mask = size - 1;
	return true;
}

/* Removes "." and ".." from an absolute name, so that each file has one name. */
static void remove_dots(char *path)
{
	char *to = path, *at = path;

	while (*at) {
		size_t length;

		while (*at == '/')
			at++;
		length = strcspn(at, "/");
		if (length == 2 && at[0] == '.' && at[1] == '.') {
			while (to > path && *--to != '/')
				;
		} else if (length > 0 && !(length == 1 && at[0] == '.')) {
			*to++ = '/';
			memmove(to, at, length);
			to += length;
		}
		at += length;
	}
	*to = '\0';
}

/* The number of a name; UINT32_MAX without memory. */
static uint32_t add_name(const char *name)
{
	uint64_t slot = hash_name(name);
	size_t size = strlen(name) + 1;
	uint32_t *place;
	char *copy;

	if (name_places.count * 2 >= name_slots_mask && !make_slots())
		return UINT32_MAX;
	for (; name_slots[slot & name_slots_mask]; slot++) {
		uint32_t number = name_slots[slot & name_slots_mask] - 1;

		if (strcmp(name_at(number), name) == 0)
			return number;
	}
	place = add_items(&name_places, sizeof(*place), 1);
	if (!place)
		return UINT32_MAX;
	*place = (uint32_t)names.count;
	copy = add_items(&names, 1, size);
	if (!copy) {
		name_places.count--;
		return UINT32_MAX;
	}
	memcpy(copy, name, size);
	name_slots[slot & name_slots_mask] = (uint32_t)name_places.count;
	return (uint32_t)name_places.count - 1;
}

/* --- units --- */

/* The directories in which units of .debug_info were compiled, by their line tables. */
struct compiled {
	uint64_t table;
	const char *directory;
};

static struct list compiled; /* of struct compiled */

static int by_table(const void *a, const void *b)
{
	const struct compiled *x = a, *y = b;

	return (x->table > y->table) - (x->table < y->table);
}

static bool read_directories(Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	uint8_t type;

	compiled.count = 0;
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &unit, NULL) == 0) {
		Dwarf_Attribute attribute;
		struct compiled *item;
		Dwarf_Word table;
		const char *directory;

		if (dwarf_formudata(
			    dwarf_attr(&unit, DW_AT_stmt_list, &attribute),
			    &table) != 0)
			continue;
		directory = dwarf_formstring(
			dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
		item = add_items(&compiled, sizeof(*item), 1);
		if (!item)
			return false;
		*item = (struct compiled){ table, directory };
	}
	if (compiled.count > 0)
		qsort(compiled.items, compiled.count, sizeof(struct compiled),
		      by_table);
	return true;
}

static const char *find_directory(uint64_t table)
{
	struct compiled wanted = { .table = table };
	const struct compiled *found = compiled.count == 0 ?
					       NULL :
					       bsearch(&wanted, compiled.items,
						       compiled.count,
						       sizeof(wanted),
						       by_table);

	return found && found->directory ? found->directory : "";
}

struct entry {
	const char *name;
	uint64_t directory;
	uint32_t number; /* of the name; UINT32_MAX: not used yet */
};

/* The line table of a unit. */
struct unit {
	struct bytes line, line_strings, strings;
	uint64_t offset;
	unsigned version, offset_size;
	unsigned minimum_length, opcode_base, line_range;
	int line_base;
	bool is_statement;
	unsigned char lengths[256];
	const unsigned char *program, *end;
};

static struct list directories; /* of const char * */
static struct list entries;	/* of struct entry */

static bool add_directory(const char *name)
{
	const char **item = add_items(&directories, sizeof(*item), 1);

	if (item)
		*item = name;
	return item != NULL;
}

static bool add_entry(const char *name, uint64_t directory)
{
	struct entry *item = add_items(&entries, sizeof(*item), 1);

	if (item)
		*item = (struct entry){ name, directory, UINT32_MAX };
	return item != NULL;
}

static void read_old_names(struct unit *unit, struct bytes *in)
{
	const char *name;

	/* Before DWARF 5, the numbers of files begin at 1, and directory 0 is the
	 * unit's. */
	add_directory(find_directory(unit->offset));
	add_entry("?", 0);
	while (*(name = read_string(in)) && add_directory(name))
		;
	while (*(name = read_string(in))) {
		uint64_t directory = read_unsigned(in);

		read_unsigned(in);
		read_unsigned(in);
		if (!add_entry(name, directory))
			break;
	}
}

static const char *read_text(struct unit *unit, struct bytes *in, uint64_t form)
{
	switch (form) {
	case DW_FORM_string: return read_string(in);
	case DW_FORM_line_strp:
		return string_at(&unit->line_strings,
				 read_fixed(in, unit->offset_size));
	case DW_FORM_strp:
		return string_at(&unit->strings,
				 read_fixed(in, unit->offset_size));
	}
	return NULL;
}

static uint64_t read_number(struct unit *unit, struct bytes *in, uint64_t form)
{
	switch (form) {
	case DW_FORM_udata: return read_unsigned(in);
	case DW_FORM_data1: return read_fixed(in, 1);
	case DW_FORM_data2: return read_fixed(in, 2);
	case DW_FORM_data4: return read_fixed(in, 4);
	case DW_FORM_data8: return read_fixed(in, 8);
	case DW_FORM_data16: skip(in, 16); return 0;
	case DW_FORM_block: skip(in, read_unsigned(in)); return 0;
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup: return read_fixed(in, unit->offset_size);
	}
	in->is_bad = true;
	return 0;
}

#define FORMATS_MAX 16

static void read_new_list(struct unit *unit, struct bytes *in,
			  bool are_directories)
{
	uint64_t kinds[FORMATS_MAX], forms[FORMATS_MAX], count;
	unsigned formats = (unsigned)read_fixed(in, 1);

	if (formats > FORMATS_MAX) {
		in->is_bad = true;
		return;
	}
	for (unsigned i = 0; i < formats; i++) {
		kinds[i] = read_unsigned(in);
		forms[i] = read_unsigned(in);
	}
	count = read_unsigned(in);
	for (uint64_t n = 0; n < count && formats > 0 && !in->is_bad; n++) {
		const char *name = "?";
		uint64_t directory = 0;

		for (unsigned i = 0; i < formats; i++) {
			const char *text = read_text(unit, in, forms[i]);
			uint64_t number = text ? 0 :
						 read_number(unit, in,
							     forms[i]);

			if (kinds[i] == DW_LNCT_path && text)
				name = text;
			else if (kinds[i] == DW_LNCT_directory_index)
				directory = number;
		}
		if (!(are_directories ? add_directory(name) :
					add_entry(name, directory)))
			return;
	}
}

/* False if the table cannot be used. */
static bool read_header(struct unit *unit, struct bytes *in)
{
	uint64_t header_size;
	struct bytes names_in;

	unit->version = (unsigned)read_fixed(in, 2);
	if (unit->version < 2 || unit->version > 5)
		return false;
	if (unit->version >= 5 &&
	    (read_fixed(in, 1) != 8 || read_fixed(in, 1) != 0))
		return false;
	header_size = read_fixed(in, unit->offset_size);
	if (header_size > (uint64_t)(in->end - in->at))
		return false;
	unit->program = in->at + header_size;
	unit->minimum_length = (unsigned)read_fixed(in, 1);
	if (unit->version >= 4)
		read_fixed(in, 1);
	unit->is_statement = read_fixed(in, 1) != 0;
	unit->line_base = (signed char)read_fixed(in, 1);
	unit->line_range = (unsigned)read_fixed(in, 1);
	unit->opcode_base = (unsigned)read_fixed(in, 1);
	if (unit->line_range == 0 || unit->opcode_base == 0)
		return false;
	for (unsigned i = 1; i < unit->opcode_base; i++)
		unit->lengths[i] = (unsigned char)read_fixed(in, 1);
	names_in = *in;
	names_in.end = unit->program;
	directories.count = entries.count = 0;
	if (unit->version >= 5) {
		read_new_list(unit, &names_in, true);
		read_new_list(unit, &names_in, false);
	} else {
		read_old_names(unit, &names_in);
	}
	return !in->is_bad && !names_in.is_bad && unit->program >= in->at;
}

/* --- names of files, absolute --- */

static const char *directory_at(uint64_t number)
{
	return number < directories.count ?
		       ((const char **)directories.items)[number] :
		       "";
}

static uint32_t make_name(const struct entry *entry)
{
	const char *directory = directory_at(entry->directory);
	const char *base = directory_at(0);
	char path[PATH_MAX * 2];
	size_t length = 0;
	const char *parts[3] = { base, directory, entry->name };

	if (entry->name[0] == '/')
		parts[0] = parts[1] = "";
	else if (directory[0] == '/' || entry->directory == 0)
		parts[0] = "";
	for (int i = 0; i < 3; i++) {
		size_t size = strlen(parts[i]);

		if (size == 0)
			continue;
		if (length + size + 2 > sizeof(path))
			return UINT32_MAX;
		path[length++] = '/';
		memcpy(path + length, parts[i], size);
		length += size;
	}
	path[length] = '\0';
	remove_dots(path);
	return add_name(path);
}

static uint32_t file_number(uint64_t number)
{
	struct entry *entry = (struct entry *)entries.items + number;

	if (number >= entries.count)
		return UINT32_MAX;
	if (entry->number == UINT32_MAX)
		entry->number = make_name(entry);
	return entry->number;
}

/* --- rows --- */

struct sequence {
	uint64_t start, end;
	size_t first, count; /* of rows */
	bool is_dropped;
};

static struct list rows;      /* of struct debuginfo_row */
static struct list sequences; /* of struct sequence */

struct machine {
	const struct debuginfo_question *question;
	uint64_t address, file, line, column;
	bool is_statement;
	bool is_odd; /* the sequence's addresses do not ascend */
	bool has_begun;
	uint64_t start;
	size_t first;
};

static void reset(struct machine *machine, const struct unit *unit)
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
	sequence = add_items(&sequences, sizeof(*sequence), 1);
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
	item = add_items(&rows, sizeof(*item), 1);
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
	row.file = file_number(machine->file);
	row.column = machine->column < 65535 ? (uint16_t)machine->column :
					       65535;
	if (row.file == UINT32_MAX)
		return true;
	if (last && last->address == row.address && last->line == row.line &&
	    last->file == row.file)
		return true;
	if (last && last->address == row.address && last->line == 0)
		rows.count--;
	item = add_items(&rows, sizeof(*item), 1);
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

static bool run_extended(struct machine *machine, const struct unit *unit,
			 struct bytes *in)
{
	uint64_t size = read_unsigned(in);
	struct bytes unit_bytes = *in;
	uint64_t address;

	skip(in, size);
	unit_bytes.end = in->at;
	switch (read_fixed(&unit_bytes, 1)) {
	case DW_LNE_end_sequence:
		if (!end_sequence(machine))
			return false;
		reset(machine, unit);
		break;
	case DW_LNE_set_address:
		address = read_fixed(&unit_bytes, 8);
		if (machine->has_begun && address < machine->address)
			machine->is_odd = true;
		machine->address = address;
		break;
	case DW_LNE_define_file: machine->is_odd = true; break;
	}
	return true;
}

static bool run_standard(struct machine *machine, const struct unit *unit,
			 struct bytes *in, unsigned opcode)
{
	switch (opcode) {
	case DW_LNS_copy: return add_row(machine);
	case DW_LNS_advance_pc:
		advance(machine, read_unsigned(in) * unit->minimum_length);
		break;
	case DW_LNS_advance_line:
		machine->line += (uint64_t)read_signed(in);
		break;
	case DW_LNS_set_file: machine->file = read_unsigned(in); break;
	case DW_LNS_set_column: machine->column = read_unsigned(in); break;
	case DW_LNS_negate_stmt:
		machine->is_statement = !machine->is_statement;
		break;
	case DW_LNS_const_add_pc:
		advance(machine, (255u - unit->opcode_base) / unit->line_range *
					 unit->minimum_length);
		break;
	case DW_LNS_fixed_advance_pc:
		advance(machine, read_fixed(in, 2));
		break;
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin: break;
	default:
		for (unsigned i = 0; i < unit->lengths[opcode]; i++)
			read_unsigned(in);
	}
	return true;
}

static bool run_special(struct machine *machine, const struct unit *unit,
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
			const struct unit *unit)
{
	struct bytes in = { unit->program, unit->end, false };
	struct machine machine = { .question = question };
	bool goes_on = true;

	reset(&machine, unit);
	while (goes_on && in.at < in.end && !in.is_bad) {
		unsigned opcode = (unsigned)read_fixed(&in, 1);

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
		       struct unit *unit)
{
	const unsigned char *begin = unit->line.at;
	struct bytes in = unit->line;

	while (in.at < in.end && !in.is_bad) {
		struct bytes unit_bytes = in;
		uint64_t size;

		unit->offset = (uint64_t)(in.at - begin);
		size = read_fixed(&unit_bytes, 4);
		unit->offset_size = size == 0xffffffff ? 8 : 4;
		if (unit->offset_size == 8)
			size = read_fixed(&unit_bytes, 8);
		if (unit_bytes.is_bad ||
		    size > (uint64_t)(unit_bytes.end - unit_bytes.at))
			break;
		unit_bytes.end = unit_bytes.at + size;
		unit->end = in.at = unit_bytes.end;
		if (read_header(unit, &unit_bytes) &&
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
static struct list sorted; /* of struct debuginfo_row */

static bool sort_rows(void)
{
	const struct sequence *all = sequences.items;

	sorted.count = 0;
	for (size_t i = 0; i < sequences.count; i++) {
		void *to;

		if (all[i].is_dropped)
			continue;
		to = add_items(&sorted, sizeof(struct debuginfo_row),
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
	rows.count = sequences.count = names.count = name_places.count = 0;
	if (name_slots)
		memset(name_slots, 0,
		       (name_slots_mask + 1) * sizeof(*name_slots));
}

void linetable_forget(void)
{
	struct list *lists[] = { &names,       &name_places, &compiled,
				 &directories, &entries,     &rows,
				 &sequences,   &sorted };

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		*lists[i] = (struct list){ NULL, 0, 0 };
	name_slots = NULL;
	name_slots_mask = 0;
}

static void free_lists(void)
{
	struct list *lists[] = { &compiled, &directories, &entries, &rows,
				 &sequences };

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		free(lists[i]->items);
		*lists[i] = (struct list){ NULL, 0, 0 };
	}
}

static int read_tables(const struct debuginfo_question *question, Dwarf *dwarf,
		       Elf *elf, struct debuginfo_lines *lines)
{
	struct unit unit = { .offset = 0 };

	empty_lists();
	if (!find_section(elf, ".debug_line", &unit.line))
		return -ENOENT;
	find_section(elf, ".debug_line_str", &unit.line_strings);
	find_section(elf, ".debug_str", &unit.strings);
	if (!read_directories(dwarf) || !read_units(question, &unit))
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
	lines.files = names.items;
	lines.files_size = (uint32_t)names.count;
	lines.file_count = (uint32_t)name_places.count;
	answer->data = &lines;
	answer->count = sorted.count;
	return sorted.count ? 0 : -ENOENT;
}
