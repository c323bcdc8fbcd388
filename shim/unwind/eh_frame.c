/*
 * Reads .eh_frame and executes its instructions for one function.  The kernel copies
 * the tables of an image that may be unloaded, so an unload meanwhile is a failed read
 * and no crash.
 */
#define _GNU_SOURCE
#include "unwind/eh_frame.h"

#include "image/image.h"
#include "os/segments.h"
#include "os/sys.h"

#include <shim/record.h>

#include <shim/banned.h>

#define IMAGES_MAX	 4096
#define MONOTONIC_COARSE 6

/* --- reading images --- */

static struct tables known_tables[IMAGES_MAX];

static bool needs_kernel(const struct tables *tables)
{
	return tables->may_go && tables->to_copy == 0;
}

static bool copy_bytes(const struct tables *tables, uintptr_t at, void *to,
		       size_t size)
{
	const char *from = (const char *)(at + tables->to_copy);

	if (at < tables->low || at > tables->high || tables->high - at < size)
		return false;
	if (needs_kernel(tables))
		return sys_peek(from, to, size) == 0;
	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = from[i];
	return true;
}

static bool find_segment(const struct image_entry *image, struct tables *tables)
{
	struct segments segments = segments_at(image->start, sys_peek);
	Elf64_Phdr part;

	while (segments_next(&segments, &part)) {
		tables->low = image->bias + part.p_vaddr;
		tables->high = tables->low + part.p_filesz;
		if (part.p_type == PT_LOAD && (part.p_flags & PF_R) &&
		    tables->index - tables->low < part.p_filesz)
			return true;
	}
	return false;
}

static bool find_tables(uintptr_t address, struct tables *tables)
{
	struct image_entry *image;
	struct tables *stored;
	bool found = false;

	image_pin();
	image = image_find(address);
	if (image && image->frames && image->index < IMAGES_MAX) {
		stored = &known_tables[image->index];
		found = true;
		if (__atomic_load_n(&stored->id, __ATOMIC_ACQUIRE) ==
		    image->id) {
			*tables = *stored;
		} else {
			tables->index = image->frames;
			tables->may_go = image->may_go;
			tables->to_copy = 0;
			tables->id = 0;
			found = find_segment(image, tables);
			if (found) {
				*stored = *tables;
				__atomic_store_n(&stored->id, image->id,
						 __ATOMIC_RELEASE);
			}
		}
	}
	image_unpin();
	return found;
}

bool eh_frame_read(uintptr_t address, void *to, size_t size)
{
	struct tables tables;

	return find_tables(address, &tables) &&
	       copy_bytes(&tables, address, to, size);
}

uintptr_t eh_frame_segment_end(uintptr_t address)
{
	const struct image_entry *image;
	struct tables tables;
	bool found = find_tables(address, &tables) &&
		     address - tables.low < tables.high - tables.low;

	if (!found) {
		image_pin();
		image = image_find(address);
		tables.index = address;
		found = image && find_segment(image, &tables);
		image_unpin();
	}
	return found ? tables.high : 0;
}

/* --- a cursor in the tables --- */

/* A system call for each byte would take half a second for the tables of Python's
 * modules. */
static bool read_ahead(struct cursor *cursor)
{
	uintptr_t left = cursor->end - cursor->at;
	size_t size = left < sizeof(cursor->ahead) ? left :
						     sizeof(cursor->ahead);

	cursor->ahead_at = cursor->at;
	cursor->ahead_size = copy_bytes(cursor->tables, cursor->at,
					cursor->ahead, size) ?
				     (uint8_t)size :
				     0;
	return cursor->ahead_size > 0;
}

static bool read_bytes(struct cursor *cursor, void *to, unsigned size)
{
	uintptr_t offset = cursor->at - cursor->ahead_at;

	if (!needs_kernel(cursor->tables))
		return copy_bytes(cursor->tables, cursor->at, to, size);
	if ((offset >= cursor->ahead_size ||
	     cursor->ahead_size - offset < size) &&
	    !read_ahead(cursor))
		return false;
	__builtin_memcpy(to, &cursor->ahead[cursor->at - cursor->ahead_at],
			 size);
	return true;
}

uint64_t cursor_read_fixed(struct cursor *cursor, unsigned size)
{
	uint64_t value = 0;

	if (cursor->failed || cursor->end - cursor->at < size ||
	    !read_bytes(cursor, &value, size)) {
		cursor->failed = true;
		return 0;
	}
	cursor->at += size;
	return value;
}

int64_t cursor_read_signed(struct cursor *cursor, unsigned size)
{
	uint64_t value = cursor_read_fixed(cursor, size);
	unsigned unused = 64 - 8 * size;

	return (int64_t)(value << unused) >> unused;
}

uint64_t cursor_read_uleb(struct cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte = cursor_read_fixed(cursor, 1);

		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

int64_t cursor_read_sleb(struct cursor *cursor)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = cursor_read_fixed(cursor, 1);
		value |= (byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && shift < 64);
	if ((byte & 0x40) && shift < 64)
		value |= ~0ull << shift;
	return (int64_t)value;
}

uintptr_t cursor_read_address(struct cursor *cursor, unsigned encoding,
			      uintptr_t base)
{
	uintptr_t place = cursor->at, value;

	switch (encoding & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c: value = cursor_read_fixed(cursor, 8); break;
	case 0x02: value = cursor_read_fixed(cursor, 2); break;
	case 0x03: value = cursor_read_fixed(cursor, 4); break;
	case 0x0a: value = (uintptr_t)cursor_read_signed(cursor, 2); break;
	case 0x0b: value = (uintptr_t)cursor_read_signed(cursor, 4); break;
	default: cursor->failed = true; return 0;
	}
	switch (encoding & 0x70) {
	case 0x00: return value;
	case 0x10: return value + place;
	case 0x30: return value + base;
	}
	cursor->failed = true;
	return 0;
}

/* --- the entry of a function --- */

#define NO_LSDA 0xff

/* Reads the length at @at; the cursor then covers the bytes after it. */
static bool open_part(struct cursor *cursor, uintptr_t at)
{
	uint64_t length;

	cursor->at = at;
	cursor->end = cursor->tables->high;
	length = cursor_read_fixed(cursor, 4);
	if (length == 0xffffffff)
		length = cursor_read_fixed(cursor, 8);
	if (cursor->failed || length == 0 || length > cursor->end - cursor->at)
		return false;
	cursor->end = cursor->at + length;
	return true;
}

static bool read_common(struct fde *fde, struct cursor cursor, uintptr_t at,
			unsigned *encoding)
{
	char letters[8];
	unsigned count = 0;
	uintptr_t end;

	if (!open_part(&cursor, at) || cursor_read_fixed(&cursor, 4) != 0)
		return false;
	if (cursor_read_fixed(&cursor, 1) == 4)
		return false; /* version 4, which compilers do not write */
	while ((letters[count] = (char)cursor_read_fixed(&cursor, 1)) != '\0')
		if (++count == sizeof(letters))
			return false;
	fde->code_align = cursor_read_uleb(&cursor);
	fde->data_align = cursor_read_sleb(&cursor);
	fde->return_register = cursor_read_uleb(&cursor);
	*encoding = 0;
	fde->lsda_encoding = NO_LSDA;
	if (letters[0] == 'z') {
		fde->has_sizes = true;
		end = cursor_read_uleb(&cursor);
		end += cursor.at;
		for (unsigned i = 1; i < count; i++) {
			if (letters[i] == 'R')
				*encoding = (unsigned)cursor_read_fixed(&cursor,
									1);
			else if (letters[i] == 'P')
				cursor_read_address(
					&cursor,
					cursor_read_fixed(&cursor, 1) & 0x7f,
					0);
			else if (letters[i] == 'L')
				fde->lsda_encoding = (uint8_t)cursor_read_fixed(
					&cursor, 1);
			else if (letters[i] == 'S')
				fde->is_signal_frame = true;
			else
				return false;
		}
		cursor.at = end;
	} else if (count > 0) {
		return false;
	}
	fde->initial = cursor;
	return !cursor.failed;
}

/* A stored 0 means that there is none. */
static uintptr_t read_lsda(struct cursor cursor, unsigned encoding)
{
	struct cursor raw = cursor;
	uintptr_t at;

	if (cursor_read_address(&raw, encoding & 0x0f, 0) == 0)
		return 0;
	at = cursor_read_address(&cursor, encoding & 0x7f, 0);
	return cursor.failed || (encoding & 0x80) ? 0 : at;
}

static bool read_fde(struct fde *fde, const struct tables *tables, uintptr_t at)
{
	struct cursor cursor = { .tables = tables };
	unsigned encoding;
	uintptr_t place;
	uint64_t back, size;

	*fde = (struct fde){ 0 };
	if (!open_part(&cursor, at))
		return false;
	place = cursor.at;
	back = cursor_read_fixed(&cursor, 4);
	if (cursor.failed || back == 0 ||
	    !read_common(fde, (struct cursor){ .tables = tables }, place - back,
			 &encoding))
		return false;
	fde->start = cursor_read_address(&cursor, encoding, tables->index);
	fde->end = fde->start +
		   cursor_read_address(&cursor, encoding & 0x0f, 0);
	if (fde->has_sizes) {
		size = cursor_read_uleb(&cursor);
		fde->program = cursor;
		fde->program.at += size;
		if (fde->lsda_encoding != NO_LSDA)
			fde->lsda = read_lsda(cursor, fde->lsda_encoding);
		return !fde->program.failed;
	}
	fde->program = cursor;
	return !cursor.failed;
}

/* Searches the sorted index, pairs of offsets, for the entry of @address. */
static uintptr_t find_fde(const struct tables *tables, uintptr_t address)
{
	struct cursor cursor = { .tables = tables,
				 .at = tables->index,
				 .end = tables->high };
	uint32_t low = 0, high;
	int32_t pair[2] = { 0, 0 };
	unsigned frame_encoding, count_encoding;
	uintptr_t table;

	if (cursor_read_fixed(&cursor, 1) != 1)
		return 0;
	frame_encoding = (unsigned)cursor_read_fixed(&cursor, 1);
	count_encoding = (unsigned)cursor_read_fixed(&cursor, 1);
	if (cursor_read_fixed(&cursor, 1) != 0x3b)
		return 0;
	cursor_read_address(&cursor, frame_encoding, tables->index);
	high = (uint32_t)cursor_read_address(&cursor, count_encoding,
					     tables->index);
	table = cursor.at;
	if (cursor.failed)
		return 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (!copy_bytes(tables, table + 8ul * middle, pair, 8))
			return 0;
		if (tables->index + (uintptr_t)(intptr_t)pair[0] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || !copy_bytes(tables, table + 8ul * (low - 1), pair, 8))
		return 0;
	return tables->index + (uintptr_t)(intptr_t)pair[1];
}

#define SCAN_INTERVAL_NS 20000000u

/* Limits scans for new images to one in SCAN_INTERVAL_NS: a scan takes long, and would
 * never find code that belongs to no file. */
static bool may_scan(void)
{
	static uint64_t next_ns;
	uint64_t now_ns = 0,
		 due_ns = __atomic_load_n(&next_ns, __ATOMIC_RELAXED);

	return sys_time_ns(MONOTONIC_COARSE, &now_ns) == 0 &&
	       now_ns >= due_ns &&
	       __atomic_compare_exchange_n(&next_ns, &due_ns,
					   now_ns + SCAN_INTERVAL_NS, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static bool open_entry(uintptr_t address, const struct tables *tables,
		       struct fde *fde)
{
	uintptr_t at = find_fde(tables, address);

	return at != 0 && read_fde(fde, tables, at) && fde->start <= address &&
	       address < fde->end;
}

bool eh_frame_open(uintptr_t address, struct tables *tables, struct fde *fde)
{
	if (!find_tables(address, tables)) {
		if (!may_scan())
			return false;
		image_look_for_walk(address);
		if (!find_tables(address, tables))
			return false;
	}
	return open_entry(address, tables, fde);
}

bool eh_frame_open_copy(uintptr_t address, uintptr_t to_copy,
			struct tables *tables, struct fde *fde)
{
	if (!find_tables(address, tables))
		return false;
	tables->to_copy = to_copy;
	return open_entry(address, tables, fde);
}

/* --- the rules for registers --- */

static struct rule *rule_of(struct cfi_machine *machine, uint64_t number)
{
	static struct rule other; /* for vector registers; never read */

	return number < WALK_REGISTERS ? &machine->row.rules[number] : &other;
}

static void set_rule(struct cfi_machine *machine, uint64_t number, enum how how,
		     int64_t value)
{
	if (number < WALK_REGISTERS)
		*rule_of(machine, number) = (struct rule){ .how = (uint8_t)how,
							   .value = value };
}

static void read_expression(struct cursor *cursor, struct rule *rule,
			    enum how how)
{
	uint64_t size = cursor_read_uleb(cursor);

	if (cursor->failed || size > cursor->end - cursor->at) {
		cursor->failed = true;
		return;
	}
	rule->how = (uint8_t)how;
	rule->size = (uint32_t)size;
	rule->value = (int64_t)cursor->at;
	cursor->at += size;
}

/* Executes one DW_CFA_*; false if it is unknown or there is no room. */
static bool execute(struct cfi_machine *machine, struct cursor *cursor)
{
	uint64_t op = cursor_read_fixed(cursor, 1), number;
	int64_t align = machine->fde.data_align;
	struct rule *cfa = &machine->row.cfa, rule = { 0 };

	switch (op & 0xc0) {
	case 0x40:
		machine->at += (op & 0x3f) * machine->fde.code_align;
		return true;
	case 0x80:
		set_rule(machine, op & 0x3f, HOW_AT,
			 (int64_t)cursor_read_uleb(cursor) * align);
		return true;
	case 0xc0:
		if ((op & 0x3f) < WALK_REGISTERS)
			machine->row.rules[op & 0x3f] =
				machine->initial.rules[op & 0x3f];
		return true;
	}
	switch (op) {
	case 0x00: return true;
	case 0x01: /* set_loc: compilers do not write it */ return false;
	case 0x02:
		machine->at += cursor_read_fixed(cursor, 1) *
			       machine->fde.code_align;
		return true;
	case 0x03:
		machine->at += cursor_read_fixed(cursor, 2) *
			       machine->fde.code_align;
		return true;
	case 0x04:
		machine->at += cursor_read_fixed(cursor, 4) *
			       machine->fde.code_align;
		return true;
	case 0x05:
		number = cursor_read_uleb(cursor);
		set_rule(machine, number, HOW_AT,
			 (int64_t)cursor_read_uleb(cursor) * align);
		return true;
	case 0x06:
		number = cursor_read_uleb(cursor);
		if (number < WALK_REGISTERS)
			machine->row.rules[number] =
				machine->initial.rules[number];
		return true;
	case 0x07:
		set_rule(machine, cursor_read_uleb(cursor), HOW_UNDEFINED, 0);
		return true;
	case 0x08:
		set_rule(machine, cursor_read_uleb(cursor), HOW_SAME, 0);
		return true;
	case 0x09:
		number = cursor_read_uleb(cursor);
		set_rule(machine, number, HOW_REGISTER,
			 (int64_t)cursor_read_uleb(cursor));
		return true;
	case 0x0a:
		if (machine->depth == ROWS_MAX)
			return false;
		machine->remembered[machine->depth++] = machine->row;
		return true;
	case 0x0b:
		if (machine->depth == 0)
			return false;
		machine->row = machine->remembered[--machine->depth];
		return true;
	case 0x0c:
	case 0x12:
		*cfa = (struct rule){ .how = HOW_IS };
		cfa->size = (uint32_t)cursor_read_uleb(cursor);
		cfa->value = op == 0x0c ? (int64_t)cursor_read_uleb(cursor) :
					  cursor_read_sleb(cursor) * align;
		return true;
	case 0x0d: cfa->size = (uint32_t)cursor_read_uleb(cursor); return true;
	case 0x0e: cfa->value = (int64_t)cursor_read_uleb(cursor); return true;
	case 0x13: cfa->value = cursor_read_sleb(cursor) * align; return true;
	case 0x0f: read_expression(cursor, cfa, HOW_EXPRESSION_IS); return true;
	case 0x10:
	case 0x16:
		number = cursor_read_uleb(cursor);
		read_expression(cursor, &rule,
				op == 0x10 ? HOW_EXPRESSION :
					     HOW_EXPRESSION_IS);
		*rule_of(machine, number) = rule;
		return true;
	case 0x11:
		number = cursor_read_uleb(cursor);
		set_rule(machine, number, HOW_AT,
			 cursor_read_sleb(cursor) * align);
		return true;
	case 0x14:
	case 0x15:
		number = cursor_read_uleb(cursor);
		set_rule(machine, number, HOW_IS,
			 (op == 0x14 ? (int64_t)cursor_read_uleb(cursor) :
				       cursor_read_sleb(cursor)) *
				 align);
		return true;
	case 0x2e: cursor_read_uleb(cursor); return true; /* GNU_args_size */
	}
	return false;
}

/* Executes instructions up to the row of @address: stops after one that advances beyond
 * it. */
static bool run_program(struct cfi_machine *machine, struct cursor *cursor,
			uintptr_t address)
{
	while (cursor->at < cursor->end && machine->at <= address) {
		if (!execute(machine, cursor) || cursor->failed)
			return false;
	}
	return true;
}

bool eh_frame_find_row(struct cfi_machine *machine, uintptr_t address)
{
	machine->depth = 0;
	machine->at = 0;
	machine->row = (struct row){ 0 };
	machine->initial = (struct row){ 0 };
	machine->left = machine->fde.initial;
	if (!run_program(machine, &machine->left, UINTPTR_MAX))
		return false;
	machine->initial = machine->row;
	machine->at = machine->fde.start;
	machine->left = machine->fde.program;
	return run_program(machine, &machine->left, address);
}

bool eh_frame_find_next_row(struct cfi_machine *machine, uintptr_t address)
{
	return run_program(machine, &machine->left, address);
}
