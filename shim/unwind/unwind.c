/*
 * The unwinder.  It executes the rules of .eh_frame for one frame at a time.  The
 * rules for an address are kept in a table that is read without a lock, so most steps
 * cost one lookup.
 */
#define _GNU_SOURCE
#include "unwind/unwind.h"

#include "arch.h"
#include "image/image.h"
#include "os/segments.h"
#include "os/sys.h"
#include "runtime/thread.h"

#include <shim/record.h>
#include <signal.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include <shim/banned.h>

/* --- reading images --- */

#define IMAGES_MAX	 4096
#define MONOTONIC_COARSE 6

/* The segment with an image's tables; by the image's index. */
struct tables {
	shim_image id; /* written last */
	uintptr_t low, high;
	uintptr_t index; /* .eh_frame_hdr */
	bool may_go;
};

static struct tables known_tables[IMAGES_MAX];

/* Copies @size bytes of the segment. */
static bool get(const struct tables *tables, uintptr_t at, void *to,
		size_t size)
{
	if (at < tables->low || at > tables->high || tables->high - at < size)
		return false;
	if (tables->may_go)
		return sys_peek((const void *)at, to, size) == 0;
	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = ((const char *)at)[i];
	return true;
}

static bool find_segment(const struct image_entry *image, struct tables *tables)
{
	struct segments segments = segments_at(image->start);
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

static bool copy_tables(uintptr_t address, struct tables *tables)
{
	struct image_entry *image;
	struct tables *known;
	bool found = false;

	image_pin();
	image = image_find(address);
	if (image && image->frames && image->index < IMAGES_MAX) {
		known = &known_tables[image->index];
		found = true;
		if (__atomic_load_n(&known->id, __ATOMIC_ACQUIRE) ==
		    image->id) {
			*tables = *known;
		} else {
			tables->index = image->frames;
			tables->may_go = image->may_go;
			tables->id = 0;
			found = find_segment(image, tables);
			if (found) {
				*known = *tables;
				__atomic_store_n(&known->id, image->id,
						 __ATOMIC_RELEASE);
			}
		}
	}
	image_unpin();
	return found;
}

/* --- a cursor in the tables --- */

struct cursor {
	const struct tables *tables;
	uintptr_t at, end;
	bool failed;
};

static uint64_t read_fixed(struct cursor *cursor, unsigned size)
{
	uint64_t value = 0;

	if (cursor->failed || cursor->end - cursor->at < size ||
	    !get(cursor->tables, cursor->at, &value, size)) {
		cursor->failed = true;
		return 0;
	}
	cursor->at += size;
	return value;
}

static int64_t read_signed(struct cursor *cursor, unsigned size)
{
	uint64_t value = read_fixed(cursor, size);
	unsigned unused = 64 - 8 * size;

	return (int64_t)(value << unused) >> unused;
}

static uint64_t read_uleb(struct cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte = read_fixed(cursor, 1);

		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

static int64_t read_sleb(struct cursor *cursor)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = read_fixed(cursor, 1);
		value |= (byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && shift < 64);
	if ((byte & 0x40) && shift < 64)
		value |= ~0ull << shift;
	return (int64_t)value;
}

/* Reads an address with an encoding DW_EH_PE_* that compilers use in these tables. */
static uintptr_t read_address(struct cursor *cursor, unsigned encoding,
			      uintptr_t base)
{
	uintptr_t place = cursor->at, value;

	switch (encoding & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c: value = read_fixed(cursor, 8); break;
	case 0x02: value = read_fixed(cursor, 2); break;
	case 0x03: value = read_fixed(cursor, 4); break;
	case 0x0a: value = (uintptr_t)read_signed(cursor, 2); break;
	case 0x0b: value = (uintptr_t)read_signed(cursor, 4); break;
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

struct entry {
	struct cursor initial, program; /* instructions */
	uintptr_t start, end;		/* of the function */
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	bool is_signal_frame;
	bool has_sizes; /* the augmentation begins with z */
	uint8_t lsda_encoding;
	uintptr_t lsda; /* the function's table of handlers, or 0 */
};

#define NO_LSDA 0xff

/* Reads the length at @at; the cursor then covers the bytes behind it. */
static bool open_part(struct cursor *cursor, uintptr_t at)
{
	uint64_t length;

	cursor->at = at;
	cursor->end = cursor->tables->high;
	length = read_fixed(cursor, 4);
	if (length == 0xffffffff)
		length = read_fixed(cursor, 8);
	if (cursor->failed || length == 0 || length > cursor->end - cursor->at)
		return false;
	cursor->end = cursor->at + length;
	return true;
}

static bool read_common(struct entry *entry, struct cursor cursor, uintptr_t at,
			unsigned *encoding)
{
	char letters[8];
	unsigned count = 0;
	uintptr_t end;

	if (!open_part(&cursor, at) || read_fixed(&cursor, 4) != 0)
		return false;
	if (read_fixed(&cursor, 1) == 4)
		return false; /* version 4, which compilers do not write */
	while ((letters[count] = (char)read_fixed(&cursor, 1)) != '\0')
		if (++count == sizeof(letters))
			return false;
	entry->code_align = read_uleb(&cursor);
	entry->data_align = read_sleb(&cursor);
	entry->return_register = read_uleb(&cursor);
	*encoding = 0;
	entry->lsda_encoding = NO_LSDA;
	if (letters[0] == 'z') {
		entry->has_sizes = true;
		end = read_uleb(&cursor);
		end += cursor.at;
		for (unsigned i = 1; i < count; i++) {
			if (letters[i] == 'R')
				*encoding = (unsigned)read_fixed(&cursor, 1);
			else if (letters[i] == 'P')
				read_address(&cursor,
					     read_fixed(&cursor, 1) & 0x7f, 0);
			else if (letters[i] == 'L')
				entry->lsda_encoding = (uint8_t)read_fixed(
					&cursor, 1);
			else if (letters[i] == 'S')
				entry->is_signal_frame = true;
			else
				return false;
		}
		cursor.at = end;
	} else if (count > 0) {
		return false;
	}
	entry->initial = cursor;
	return !cursor.failed;
}

/* A stored 0 means that there is none. */
static uintptr_t read_lsda(struct cursor cursor, unsigned encoding)
{
	struct cursor raw = cursor;
	uintptr_t at;

	if (read_address(&raw, encoding & 0x0f, 0) == 0)
		return 0;
	at = read_address(&cursor, encoding & 0x7f, 0);
	return cursor.failed || (encoding & 0x80) ? 0 : at;
}

static bool read_entry(struct entry *entry, const struct tables *tables,
		       uintptr_t at)
{
	struct cursor cursor = { .tables = tables };
	unsigned encoding;
	uintptr_t place;
	uint64_t back, size;

	*entry = (struct entry){ 0 };
	if (!open_part(&cursor, at))
		return false;
	place = cursor.at;
	back = read_fixed(&cursor, 4);
	if (cursor.failed || back == 0 ||
	    !read_common(entry, (struct cursor){ .tables = tables },
			 place - back, &encoding))
		return false;
	entry->start = read_address(&cursor, encoding, tables->index);
	entry->end = entry->start + read_address(&cursor, encoding & 0x0f, 0);
	if (entry->has_sizes) {
		size = read_uleb(&cursor);
		entry->program = cursor;
		entry->program.at += size;
		if (entry->lsda_encoding != NO_LSDA)
			entry->lsda = read_lsda(cursor, entry->lsda_encoding);
		return !entry->program.failed;
	}
	cursor.at += read_uleb(&cursor);
	entry->program = cursor;
	return !cursor.failed;
}

/* Searches the sorted index, pairs of offsets, for the entry of @address. */
static uintptr_t find_entry(const struct tables *tables, uintptr_t address)
{
	struct cursor cursor = { .tables = tables,
				 .at = tables->index,
				 .end = tables->high };
	uint32_t low = 0, high;
	int32_t pair[2] = { 0, 0 };
	unsigned frame_encoding, count_encoding;
	uintptr_t table;

	if (read_fixed(&cursor, 1) != 1)
		return 0;
	frame_encoding = (unsigned)read_fixed(&cursor, 1);
	count_encoding = (unsigned)read_fixed(&cursor, 1);
	if (read_fixed(&cursor, 1) != 0x3b)
		return 0;
	read_address(&cursor, frame_encoding, tables->index);
	high = (uint32_t)read_address(&cursor, count_encoding, tables->index);
	table = cursor.at;
	if (cursor.failed)
		return 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (!get(tables, table + 8ul * middle, pair, 8))
			return 0;
		if (tables->index + (uintptr_t)(intptr_t)pair[0] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || !get(tables, table + 8ul * (low - 1), pair, 8))
		return 0;
	return tables->index + (uintptr_t)(intptr_t)pair[1];
}

/* --- the rules for registers --- */

enum how {
	HOW_SAME, /* or unknown, if functions do not preserve it */
	HOW_UNDEFINED,
	HOW_AT, /* in memory, at CFA + value */
	HOW_IS, /* CFA + value */
	HOW_REGISTER,
	HOW_EXPRESSION, /* in memory, at the expression's result */
	HOW_EXPRESSION_IS,
};

struct rule {
	uint8_t how;
	uint32_t size; /* of an expression */
	int64_t value; /* or the address of the expression */
};

struct row {
	struct rule cfa; /* HOW_IS: register in size; or an expression */
	struct rule rules[WALK_REGISTERS];
};

#define ROWS_MAX 4

struct machine {
	struct entry entry;
	struct row row, initial;
	struct row remembered[ROWS_MAX];
	unsigned depth;
	uintptr_t at;
};

static struct rule *rule_of(struct machine *machine, uint64_t number)
{
	static struct rule other; /* for vector registers; never read */

	return number < WALK_REGISTERS ? &machine->row.rules[number] : &other;
}

static void set(struct machine *machine, uint64_t number, enum how how,
		int64_t value)
{
	if (number < WALK_REGISTERS)
		*rule_of(machine, number) = (struct rule){ .how = (uint8_t)how,
							   .value = value };
}

static void read_expression(struct cursor *cursor, struct rule *rule,
			    enum how how)
{
	uint64_t size = read_uleb(cursor);

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
static bool execute(struct machine *machine, struct cursor *cursor)
{
	uint64_t op = read_fixed(cursor, 1), number;
	int64_t align = machine->entry.data_align;
	struct rule *cfa = &machine->row.cfa, rule = { 0 };

	switch (op & 0xc0) {
	case 0x40:
		machine->at += (op & 0x3f) * machine->entry.code_align;
		return true;
	case 0x80:
		set(machine, op & 0x3f, HOW_AT,
		    (int64_t)read_uleb(cursor) * align);
		return true;
	case 0xc0:
		if ((op & 0x3f) < WALK_REGISTERS)
			machine->row.rules[op & 0x3f] =
				machine->initial.rules[op & 0x3f];
		return true;
	}
	switch (op) {
	case 0x00: return true;
	case 0x01: /* set_loc: not written by compilers */ return false;
	case 0x02:
		machine->at += read_fixed(cursor, 1) *
			       machine->entry.code_align;
		return true;
	case 0x03:
		machine->at += read_fixed(cursor, 2) *
			       machine->entry.code_align;
		return true;
	case 0x04:
		machine->at += read_fixed(cursor, 4) *
			       machine->entry.code_align;
		return true;
	case 0x05:
		number = read_uleb(cursor);
		set(machine, number, HOW_AT,
		    (int64_t)read_uleb(cursor) * align);
		return true;
	case 0x06:
		number = read_uleb(cursor);
		if (number < WALK_REGISTERS)
			machine->row.rules[number] =
				machine->initial.rules[number];
		return true;
	case 0x07:
		set(machine, read_uleb(cursor), HOW_UNDEFINED, 0);
		return true;
	case 0x08: set(machine, read_uleb(cursor), HOW_SAME, 0); return true;
	case 0x09:
		number = read_uleb(cursor);
		set(machine, number, HOW_REGISTER, (int64_t)read_uleb(cursor));
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
		cfa->size = (uint32_t)read_uleb(cursor);
		cfa->value = op == 0x0c ? (int64_t)read_uleb(cursor) :
					  read_sleb(cursor) * align;
		return true;
	case 0x0d: cfa->size = (uint32_t)read_uleb(cursor); return true;
	case 0x0e: cfa->value = (int64_t)read_uleb(cursor); return true;
	case 0x13: cfa->value = read_sleb(cursor) * align; return true;
	case 0x0f: read_expression(cursor, cfa, HOW_EXPRESSION_IS); return true;
	case 0x10:
	case 0x16:
		number = read_uleb(cursor);
		read_expression(cursor, &rule,
				op == 0x10 ? HOW_EXPRESSION :
					     HOW_EXPRESSION_IS);
		*rule_of(machine, number) = rule;
		return true;
	case 0x11:
		number = read_uleb(cursor);
		set(machine, number, HOW_AT, read_sleb(cursor) * align);
		return true;
	case 0x14:
	case 0x15:
		number = read_uleb(cursor);
		set(machine, number, HOW_IS,
		    (op == 0x14 ? (int64_t)read_uleb(cursor) :
				  read_sleb(cursor)) *
			    align);
		return true;
	case 0x2e: read_uleb(cursor); return true; /* GNU_args_size */
	}
	return false;
}

/* Executes instructions up to the row of @address. */
static bool run(struct machine *machine, struct cursor cursor,
		uintptr_t address)
{
	while (cursor.at < cursor.end && machine->at <= address) {
		if (!execute(machine, &cursor) || cursor.failed)
			return false;
	}
	return true;
}

static bool find_row(struct machine *machine, uintptr_t address)
{
	machine->depth = 0;
	machine->at = 0;
	machine->row = (struct row){ 0 };
	machine->initial = (struct row){ 0 };
	if (!run(machine, machine->entry.initial, UINTPTR_MAX))
		return false;
	machine->initial = machine->row;
	machine->at = machine->entry.start;
	/* run() stops behind an instruction that advances beyond @address. */
	return run(machine, machine->entry.program, address);
}

/* --- the stack --- */

static bool load(const struct unwind *walk, uintptr_t at, uintptr_t *value)
{
	if (at >= walk->stack_low && at < walk->stack_high &&
	    walk->stack_high - at >= sizeof(*value)) {
		*value = *(const uintptr_t *)at;
		return true;
	}
	return sys_peek((const void *)at, value, sizeof(*value)) == 0;
}

static bool holds(const struct unwind *walk, unsigned number)
{
	return number < WALK_REGISTERS && (walk->known >> number & 1);
}

#define DEPTH 16

/* Evaluates the DWARF expressions that compilers and libc use here: for aligned stacks,
 * in stubs, and behind signal handlers. */
static bool evaluate(const struct unwind *walk, const struct tables *tables,
		     const struct rule *rule, const uintptr_t *first,
		     uintptr_t *result)
{
	struct cursor cursor = { .tables = tables,
				 .at = (uintptr_t)rule->value,
				 .end = (uintptr_t)rule->value + rule->size };
	uintptr_t stack[DEPTH], a, b;
	unsigned depth = 0, number;

	if (first)
		stack[depth++] = *first;
	while (cursor.at < cursor.end) {
		uint64_t op = read_fixed(&cursor, 1);

		if (cursor.failed || depth == DEPTH)
			return false;
		if (op >= 0x70 && op <= 0x8f) {
			number = (unsigned)op - 0x70;
			if (!holds(walk, number))
				return false;
			stack[depth++] = walk->registers[number] +
					 (uintptr_t)read_sleb(&cursor);
			continue;
		}
		if (op >= 0x30 && op <= 0x4f) {
			stack[depth++] = op - 0x30;
			continue;
		}
		switch (op) {
		case 0x08: stack[depth++] = read_fixed(&cursor, 1); continue;
		case 0x09:
			stack[depth++] = (uintptr_t)read_signed(&cursor, 1);
			continue;
		case 0x0a: stack[depth++] = read_fixed(&cursor, 2); continue;
		case 0x0b:
			stack[depth++] = (uintptr_t)read_signed(&cursor, 2);
			continue;
		case 0x10: stack[depth++] = read_uleb(&cursor); continue;
		case 0x11:
			stack[depth++] = (uintptr_t)read_sleb(&cursor);
			continue;
		case 0x23:
			if (depth < 1)
				return false;
			stack[depth - 1] += read_uleb(&cursor);
			continue;
		case 0x06:
			if (depth < 1 ||
			    !load(walk, stack[depth - 1], &stack[depth - 1]))
				return false;
			continue;
		case 0x96: continue;
		}
		if (depth < 2)
			return false;
		b = stack[--depth];
		a = stack[depth - 1];
		switch (op) {
		case 0x1a: a &= b; break;
		case 0x1c: a -= b; break;
		case 0x21: a |= b; break;
		case 0x22: a += b; break;
		case 0x24: a = b < 64 ? a << b : 0; break;
		case 0x25: a = b < 64 ? a >> b : 0; break;
		case 0x29: a = a == b; break;
		case 0x2a: a = (intptr_t)a >= (intptr_t)b; break;
		case 0x2b: a = (intptr_t)a > (intptr_t)b; break;
		case 0x2c: a = (intptr_t)a <= (intptr_t)b; break;
		case 0x2d: a = (intptr_t)a < (intptr_t)b; break;
		default: return false;
		}
		stack[depth - 1] = a;
	}
	if (depth == 0 || cursor.failed)
		return false;
	*result = stack[depth - 1];
	return true;
}

/* --- one step, by the tables --- */

static bool find_cfa(const struct unwind *walk, const struct machine *machine,
		     const struct tables *tables, uintptr_t *cfa)
{
	const struct rule *rule = &machine->row.cfa;

	if (rule->how == HOW_EXPRESSION_IS)
		return evaluate(walk, tables, rule, NULL, cfa);
	if (rule->how != HOW_IS || !holds(walk, rule->size))
		return false;
	*cfa = walk->registers[rule->size] + (uintptr_t)rule->value;
	return true;
}

static bool apply(struct unwind *walk, const struct machine *machine,
		  const struct tables *tables)
{
	struct unwind next = *walk;
	uintptr_t cfa;

	if (!find_cfa(walk, machine, tables, &cfa))
		return false;
	next.registers[WALK_SP] = cfa;
	next.known |= 1u << WALK_SP;
	for (unsigned i = 0; i < WALK_REGISTERS; i++) {
		const struct rule *rule = &machine->row.rules[i];
		uintptr_t *value = &next.registers[i];
		bool good = true;

		switch (rule->how) {
		case HOW_SAME:
			/* After a call, only registers that functions preserve
			 * are known. */
			if (i != WALK_SP)
				good = holds(walk, i) && (0xf048u >> i & 1);
			break;
		case HOW_UNDEFINED: good = false; break;
		case HOW_AT:
			good = load(walk, cfa + (uintptr_t)rule->value, value);
			break;
		case HOW_IS: *value = cfa + (uintptr_t)rule->value; break;
		case HOW_REGISTER:
			good = holds(walk, (unsigned)rule->value);
			if (good)
				*value = walk->registers[rule->value];
			break;
		case HOW_EXPRESSION:
			good = evaluate(walk, tables, rule, &cfa, value) &&
			       load(walk, *value, value);
			break;
		case HOW_EXPRESSION_IS:
			good = evaluate(walk, tables, rule, &cfa, value);
			break;
		}
		if (good)
			next.known |= 1u << i;
		else
			next.known &= ~(1u << i);
	}
	if (!holds(&next, WALK_IP))
		return false;
	next.is_exact = machine->entry.is_signal_frame;
	*walk = next;
	return true;
}

/* --- the table of known rows --- */

#define CACHE_BITS 15

/*
 * The common form of a row: the CFA is a register plus a distance; the return address
 * and the registers that functions preserve are in memory at distances from it.  A
 * reader that interferes with a writer finds a wrong sum.
 */
struct code_cache_entry {
	uint64_t address, function, places, cfa, sum;
};

enum known_flags {
	KNOWN_SIMPLE = 1,
	KNOWN_LAST = 2,	   /* the frame has no caller */
	KNOWN_COMPLEX = 4, /* the tables must be read each time */
	KNOWN_SIGNAL = 8,  /* a signal frame, which is complex */
};

static struct code_cache_entry cache[1u << CACHE_BITS];
static uint32_t epoch; /* part of the key of valid entries */

static const uint8_t kept[] = { 3, 6, 12, 13, 14, 15 };

#define PLACE_BITS 10
#define PLACE_MASK 0x3ffu
#define PLACE_SAME 0x200u /* -512: the register is unchanged */

static struct code_cache_entry *place_of(uintptr_t address)
{
	uint64_t hash = address * 0x9e3779b97f4a7c15ull;

	return &cache[hash >> (64 - CACHE_BITS)];
}

static uint64_t key_of(uintptr_t address, bool is_exact)
{
	return address << 1 ^ is_exact ^
	       (uint64_t)__atomic_load_n(&epoch, __ATOMIC_ACQUIRE) << 48;
}

static uint64_t sum_of(const struct code_cache_entry *known)
{
	return ~(known->address ^ known->function * 5 ^ known->places ^
		 known->cfa * 3);
}

static bool find_known(uint64_t key, struct code_cache_entry *found)
{
	const struct code_cache_entry *at = place_of(key);

	found->address = __atomic_load_n(&at->address, __ATOMIC_RELAXED);
	found->function = __atomic_load_n(&at->function, __ATOMIC_RELAXED);
	found->places = __atomic_load_n(&at->places, __ATOMIC_RELAXED);
	found->cfa = __atomic_load_n(&at->cfa, __ATOMIC_RELAXED);
	found->sum = __atomic_load_n(&at->sum, __ATOMIC_RELAXED);
	return found->address == key && found->sum == sum_of(found);
}

static void keep(uint64_t key, uint64_t function, uint64_t places, uint64_t cfa)
{
	const struct code_cache_entry new = { key, function, places, cfa, 0 };
	struct code_cache_entry *at = place_of(key);

	__atomic_store_n(&at->address, key, __ATOMIC_RELAXED);
	__atomic_store_n(&at->function, function, __ATOMIC_RELAXED);
	__atomic_store_n(&at->places, places, __ATOMIC_RELAXED);
	__atomic_store_n(&at->cfa, cfa, __ATOMIC_RELAXED);
	__atomic_store_n(&at->sum, sum_of(&new), __ATOMIC_RELAXED);
}

/* Bits of @cfa: 8 flags, 8 register, 16 distance / 8 of the return address (signed),
 * 32 distance of the CFA. */
static void keep_row(uint64_t key, const struct machine *machine)
{
	const struct row *row = &machine->row;
	const struct rule *ip = &row->rules[machine->entry.return_register];
	uint64_t places = 0, cfa;

	if (ip->how == HOW_UNDEFINED) {
		keep(key, machine->entry.start, 0, KNOWN_LAST);
		return;
	}
	cfa = KNOWN_SIMPLE | (uint64_t)row->cfa.size << 8 |
	      (uint64_t)(uint16_t)(ip->value / 8) << 16 |
	      (uint64_t)(uint32_t)row->cfa.value << 32;
	if (row->cfa.how != HOW_IS || row->cfa.size >= WALK_REGISTERS ||
	    row->cfa.value != (int32_t)row->cfa.value || ip->how != HOW_AT ||
	    ip->value % 8 || ip->value / 8 != (int16_t)(ip->value / 8))
		cfa = KNOWN_COMPLEX;
	for (unsigned i = 0; i < sizeof(kept); i++) {
		const struct rule *rule = &row->rules[kept[i]];
		int64_t place = rule->value / 8;

		if (rule->how == HOW_SAME)
			place = -512;
		else if (rule->how != HOW_AT || rule->value % 8 ||
			 place <= -512 || place > 511)
			cfa = KNOWN_COMPLEX;
		places |= ((uint64_t)place & PLACE_MASK) << (PLACE_BITS * i);
	}
	for (unsigned i = 0; i < WALK_REGISTERS; i++)
		if (i != WALK_IP && i != WALK_SP && !(0xf048u >> i & 1) &&
		    row->rules[i].how != HOW_SAME)
			cfa = KNOWN_COMPLEX;
	if (machine->entry.is_signal_frame)
		cfa = KNOWN_COMPLEX | KNOWN_SIGNAL;
	keep(key, machine->entry.start, places, cfa);
}

static bool step_simply(struct unwind *walk,
			const struct code_cache_entry *known)
{
	unsigned number = known->cfa >> 8 & 0xff;
	int64_t ip_place = (int64_t)(int16_t)(known->cfa >> 16) * 8;
	uintptr_t cfa, ip;
	uint32_t lost = 0;

	if (!holds(walk, number))
		return false;
	cfa = walk->registers[number] +
	      (uintptr_t)(int64_t)(int32_t)(known->cfa >> 32);
	if (!load(walk, cfa + (uintptr_t)ip_place, &ip))
		return false;
	for (unsigned i = 0; i < sizeof(kept); i++) {
		uint64_t place = known->places >> (PLACE_BITS * i) & PLACE_MASK;
		int64_t distance = (int64_t)(place << 54) >> 54;

		if (place == PLACE_SAME)
			continue;
		if (load(walk, cfa + (uintptr_t)(distance * 8),
			 &walk->registers[kept[i]]))
			walk->known |= 1u << kept[i];
		else
			lost |= 1u << kept[i];
	}
	walk->known &= 0xf048u & ~lost;
	walk->known |= 1u << WALK_SP | 1u << WALK_IP;
	walk->registers[WALK_SP] = cfa;
	walk->registers[WALK_IP] = ip;
	walk->is_exact = false;
	return true;
}

/* --- stepping --- */

/* An address inside the call instruction: the return address may be in another
 * function. */
static uintptr_t inside(const struct unwind *walk)
{
	return walk->registers[WALK_IP] - !walk->is_exact;
}

#define LOOK_AGAIN_NS 20000000u

/* Limits scans for new images to one in LOOK_AGAIN_NS: a scan takes long, and code that
 * is in no file stays unknown. */
static bool may_look(void)
{
	static uint64_t next_ns;
	uint64_t now_ns = 0,
		 due_ns = __atomic_load_n(&next_ns, __ATOMIC_RELAXED);

	return sys_time_ns(MONOTONIC_COARSE, &now_ns) == 0 &&
	       now_ns >= due_ns &&
	       __atomic_compare_exchange_n(&next_ns, &due_ns,
					   now_ns + LOOK_AGAIN_NS, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static bool open_entry(uintptr_t address, struct tables *tables,
		       struct entry *entry)
{
	uintptr_t at;

	if (!copy_tables(address, tables)) {
		if (!may_look())
			return false;
		shim_image_note(address);
		if (!copy_tables(address, tables))
			return false;
	}
	at = find_entry(tables, address);
	return at != 0 && read_entry(entry, tables, at) &&
	       address - entry->start < entry->end - entry->start;
}

uintptr_t unwind_function(const struct unwind *walk)
{
	struct tables tables;
	struct entry entry;

	return open_entry(inside(walk), &tables, &entry) ? entry.start : 0;
}

uintptr_t unwind_code(uintptr_t address, uintptr_t *lsda)
{
	struct tables tables;
	struct entry entry;

	if (!open_entry(address, &tables, &entry))
		return 0;
	if (lsda)
		*lsda = entry.lsda;
	return entry.start;
}

bool unwind_is_handlers(const struct unwind *walk)
{
	struct code_cache_entry known;
	struct machine machine;
	struct tables tables;
	uint64_t key = key_of(walk->registers[WALK_IP], walk->is_exact);

	if (walk->is_exact || walk->registers[WALK_IP] == 0)
		return false;
	if (find_known(key, &known))
		return known.cfa & KNOWN_SIGNAL;
	if (!open_entry(inside(walk), &tables, &machine.entry) ||
	    machine.entry.return_register != WALK_IP ||
	    !find_row(&machine, inside(walk)))
		return false;
	keep_row(key, &machine);
	return machine.entry.is_signal_frame;
}

static bool step_by_tables(struct unwind *walk, uint64_t key)
{
	uintptr_t address = inside(walk);
	struct machine machine;
	struct tables tables;

	if (!open_entry(address, &tables, &machine.entry) ||
	    machine.entry.return_register != WALK_IP ||
	    !find_row(&machine, address))
		return false;
	walk->function = machine.entry.start;
	keep_row(key, &machine);
	if (machine.row.rules[WALK_IP].how == HOW_UNDEFINED) {
		walk->is_last = true;
		return false;
	}
	return apply(walk, &machine, &tables);
}

bool unwind_step(struct unwind *walk)
{
	uint64_t key = key_of(walk->registers[WALK_IP], walk->is_exact);
	uintptr_t sp = walk->registers[WALK_SP];
	uintptr_t ip = walk->registers[WALK_IP];
	struct code_cache_entry known;
	bool done;

	walk->function = 0;
	/* A return address of 0 marks the end of a stack. */
	if (ip == 0 && !walk->is_exact)
		return walk->is_last = true, false;
	if (!find_known(key, &known) || (known.cfa & KNOWN_COMPLEX))
		done = step_by_tables(walk, key);
	else if ((walk->function = known.function) == 0)
		return false;
	else if (known.cfa & KNOWN_LAST)
		return walk->is_last = true, false;
	else
		done = step_simply(walk, &known);
	/* A step that changes nothing would repeat for ever, as on a broken
	 * stack. */
	return done && (walk->registers[WALK_SP] != sp ||
			walk->registers[WALK_IP] != ip);
}

#define TRIES_MAX 8

/* Tries several times: the thread may run on another stack at a try. */
static void find_own_stack(struct thread *self, uintptr_t sp)
{
	uintptr_t low, high;

	if (self->own_stack_tries >= TRIES_MAX)
		return;
	self->own_stack_tries++;
	if (shim_stack_find(sp, &low, &high) == SHIM_STACK_THREAD &&
	    stack_is_own(low, high)) {
		self->own_stack_low = low;
		self->own_stack_high = high;
	}
}

void unwind_begin(struct unwind *walk, struct thread *self)
{
	uintptr_t sp = walk->registers[WALK_SP];

	if (!self)
		return;
	if (self->own_stack_high == 0)
		find_own_stack(self, sp);
	if (sp >= self->own_stack_low && sp < self->own_stack_high) {
		walk->stack_low = sp - 128;
		walk->stack_high = self->own_stack_high;
	}
}

void unwind_from_context(struct unwind *walk, const void *context,
			 struct thread *self)
{
	*walk = (struct unwind){ .is_exact = true };
	walk->known = ARCH_GET_REGISTERS((const ucontext_t *)context,
					 walk->registers);
	unwind_begin(walk, self);
}

uintptr_t unwind_end(uintptr_t ip, uintptr_t sp,
		     uintptr_t (*read)(void *argument, int number),
		     void *argument)
{
	struct unwind walk = { .is_exact = true };
	uintptr_t own[WALK_REGISTERS];

	/* This processor has no unwinder. */
	if (!ARCH_GET_OWN_REGISTERS(own))
		return 0;
	for (unsigned i = 0; i < sizeof(kept); i++) {
		walk.registers[kept[i]] = read(argument, kept[i]);
		walk.known |= 1u << kept[i];
	}
	walk.registers[WALK_SP] = sp;
	walk.registers[WALK_IP] = ip;
	walk.known |= 1u << WALK_SP | 1u << WALK_IP;
	return unwind_step(&walk) ? walk.registers[WALK_SP] : 0;
}

void unwind_closed(void)
{
	if ((uint16_t)__atomic_add_fetch(&epoch, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	for (unsigned i = 0; i < sizeof(cache) / sizeof(*cache); i++)
		__atomic_store_n(&cache[i].address, 0, __ATOMIC_RELAXED);
}
