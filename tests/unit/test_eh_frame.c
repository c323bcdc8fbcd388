/*
 * Tables for exceptions that the test writes byte by byte, read by eh_frame.c and by
 * fde_index.c.  Unreadable memory follows the tables.
 */
#define _GNU_SOURCE
#include "image/image.h"
#include "os/sys.h"
#include "unwind/eh_frame.h"
#include "unwind/fde_index.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <elf.h>
#include <shim/record.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define ROOM (64u << 10)

/* --- the image --- */

static unsigned char bytes[ROOM]; /* what the test has written */
static size_t size;
static struct image_entry image = { .id = 1, .index = 7 };
static uint64_t frames_of_scan; /* what a scan finds */
static bool peek_fails;
static unsigned peeks;
static struct {
	Elf64_Ehdr elf;
	Elf64_Phdr parts[3];
} head;
static unsigned scans;
static uint64_t time_ns = 1000000000;

void image_pin(void)
{
}

void image_unpin(void)
{
}

/* Code of the image is anywhere. */
struct image_entry *image_find(uintptr_t address)
{
	return address ? &image : NULL;
}

void image_look_for_walk(uintptr_t address)
{
	(void)address;
	scans++;
	if (frames_of_scan)
		image.frames = frames_of_scan;
}

int sys_time_ns(int clock, uint64_t *ns)
{
	(void)clock;
	*ns = time_ns;
	return 0;
}

int sys_peek(const void *from, void *to, size_t length)
{
	peeks++;
	if (peek_fails)
		return -1;
	memcpy(to, from, length);
	return 0;
}

/* The tables end where nothing is mapped. */
static void place_image(void)
{
	static char *memory;

	if (!memory) {
		memory = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		cr_assert(memory != MAP_FAILED);
		cr_assert(zero(int, mprotect(memory + ROOM, 4096, PROT_NONE)));
	}
	memcpy(memory + ROOM - size, bytes, size);
	head.elf.e_phoff = sizeof(head.elf);
	head.elf.e_phentsize = sizeof(head.parts[0]);
	head.elf.e_phnum = 3;
	/* The tables are in the last part; the others only look like it. */
	head.parts[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
				      .p_flags = PF_X,
				      .p_filesz = size };
	head.parts[1] = (Elf64_Phdr){ .p_type = PT_NOTE,
				      .p_flags = PF_R,
				      .p_filesz = size };
	head.parts[2] = (Elf64_Phdr){ .p_type = PT_LOAD,
				      .p_flags = PF_R,
				      .p_filesz = size };
	image.start = (uintptr_t)&head;
	image.bias = image.frames = (uintptr_t)memory + ROOM - size;
	image.id++; /* nothing is known about it */
}

static void put_number(uint64_t number, size_t length)
{
	cr_assert(size + length <= ROOM);
	memcpy(bytes + size, &number, length);
	size += length;
}

static void put(const char *text, size_t length)
{
	cr_assert(size + length <= ROOM);
	memcpy(bytes + size, text, length);
	size += length;
}

/* --- instructions --- */

/* The rules of a row as text: + for a value itself, @ for its place. */
static const char *text_of(const struct row *row)
{
	static char text[512];
	size_t at = 0;

	for (int i = -1; i < WALK_REGISTERS; i++) {
		const struct rule *rule = i < 0 ? &row->cfa : &row->rules[i];
		char *to = text + at;
		size_t room = sizeof(text) - at;

		if (i >= 0 && rule->how == HOW_SAME)
			continue;
		if (i < 0 && rule->how == HOW_IS)
			at += (size_t)snprintf(to, room, "r%u%+ld", rule->size,
					       (long)rule->value);
		else if (rule->how == HOW_UNDEFINED)
			at += (size_t)snprintf(to, room, " %d?", i);
		else if (rule->how == HOW_REGISTER)
			at += (size_t)snprintf(to, room, " %d=r%ld", i,
					       (long)rule->value);
		else if (rule->how == HOW_AT || rule->how == HOW_IS)
			at += (size_t)snprintf(to, room, " %d%s%ld", i,
					       rule->how == HOW_AT ? "@" : "=",
					       (long)rule->value);
		else
			at += (size_t)snprintf(
				to, room, " %d%s<%.*s>", i,
				rule->how == HOW_EXPRESSION ? "@" : "=",
				(int)rule->size, (const char *)rule->value);
	}
	return text;
}

#define CFA    "\x0c\7\x08" /* r7 + 8 */
#define BY(n)  "\x02" n
#define OFFSET "\x0e\x10"

static const struct {
	const char *name, *initial;
	size_t initial_size;
	const char *program;
	size_t program_size;
	unsigned at;
	const char *row; /* NULL: the instructions are not understood */
} programs[] = {
#define P(name, initial, program, at, row) \
	{ name, initial, sizeof(initial) - 1, program, sizeof(program) - 1, \
	  at,	row },
#include "eh_frame_programs.def"
#undef P
};

static void begin_program(struct cfi_machine *machine,
			  const struct tables *tables, size_t i)
{
	uintptr_t initial = (uintptr_t)programs[i].initial,
		  program = (uintptr_t)programs[i].program;

	memset(machine, 0x55, sizeof(*machine));
	machine->fde = (struct fde){
		.initial = { .tables = tables,
			     .at = initial,
			     .end = initial + programs[i].initial_size },
		.program = { .tables = tables,
			     .at = program,
			     .end = program + programs[i].program_size },
		.start = 0x1000,
		.end = 0x2000,
		.code_align = 2,
		.data_align = -8,
	};
}

static void check_program(size_t i, bool may_go)
{
	struct tables tables = { .id = 1,
				 .high = UINTPTR_MAX,
				 .may_go = may_go };
	static struct cfi_machine machine;
	size_t length = programs[i].initial_size + programs[i].program_size;
	bool found;

	begin_program(&machine, &tables, i);
	peeks = 0;
	found = eh_frame_find_row(&machine, 0x1000 + programs[i].at);
	cr_expect(eq(int, found, programs[i].row != NULL), "%s",
		  programs[i].name);
	if (found && programs[i].row)
		cr_expect(eq(str, (char *)text_of(&machine.row),
			     (char *)programs[i].row),
			  "%s", programs[i].name);
	/* Each part is one copy or more; none is one of each byte. */
	cr_expect(may_go ? peeks <= 2 + length / 23 : peeks == 0,
		  "%s: %u of %zu", programs[i].name, peeks, length);
}

Test(eh_frame, each_program_has_its_row)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		check_program(i, false);
		check_program(i, true);
	}
}

/* From any address before it, and from itself. */
Test(eh_frame, a_search_that_goes_on_finds_the_same_row)
{
	static struct cfi_machine machine;

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		uintptr_t address = 0x1000 + programs[i].at;

		if (!programs[i].row)
			continue;
		for (uintptr_t from = 0x1000; from <= address; from++) {
			struct tables tables = { .id = 1, .high = UINTPTR_MAX };

			begin_program(&machine, &tables, i);
			cr_assert(eh_frame_find_row(&machine, from));
			cr_assert(eh_frame_find_next_row(&machine, address));
			cr_expect(eq(str, (char *)text_of(&machine.row),
				     (char *)programs[i].row),
				  "%s from %lu", programs[i].name,
				  (unsigned long)(from - 0x1000));
		}
	}
}

/* --- the index and the entries --- */

#define HEAD 12 /* bytes before the pairs */

/* The index has pairs of 4 bytes, relative to it. */
static void begin_index(unsigned count)
{
	size = 0;
	put("\1\x1b\3\x3b", 4);
	put_number(HEAD + 8 * count - 4, 4);
	put_number(count, 4);
	for (unsigned i = 0; i < count; i++)
		put_number(0, 8);
}

static void set_pair(unsigned number, uint32_t start, uint32_t entry)
{
	memcpy(bytes + HEAD + 8 * number, &start, 4);
	memcpy(bytes + HEAD + 8 * number + 4, &entry, 4);
}

static size_t part_start;

static void begin_part(void)
{
	part_start = size;
	put_number(0, 4);
}

static void end_part(void)
{
	uint32_t length;

	while (size % 4)
		put_number(0, 1);
	length = (uint32_t)(size - part_start - 4);
	memcpy(bytes + part_start, &length, 4);
}

/* A kind of CIE, and how the addresses in its entries are written. */
static const struct kind {
	const char *name, *cie;
	size_t cie_size;
	unsigned address_size;
	enum { ABSOLUTE, FROM_PLACE, FROM_INDEX } base;
	const char *sizes; /* of the augmentation of an entry; NULL: none */
	size_t sizes_size;
	enum { USUAL, SIGNAL, HANDLERS, UNKNOWN } is;
} kinds[] = {
#define K(name, cie, address_size, base, sizes, is) \
	{ \
		name, cie, sizeof(cie) - 1, address_size, base, sizes, \
			sizeof(sizes) - 1, is \
	}
#include "eh_frame_kinds.def"
#undef K
};

/* A function of 0x60 bytes at each 0x80 bytes, from 0x10000 below the index on. */
static uintptr_t start_of(unsigned number)
{
	return image.frames - 0x10000 + number * 0x80;
}

static void write_tables(const struct kind *kind, unsigned count)
{
	size_t cie;

	begin_index(count);
	cie = size;
	begin_part();
	put_number(0, 4);
	put(kind->cie, kind->cie_size);
	put(CFA, 3);
	end_part();
	for (unsigned i = 0; i < count; i++) {
		set_pair(i, (uint32_t)(i * 0x80 - 0x10000), (uint32_t)size);
		begin_part();
		put_number(size - cie, 4);
		/* Until the address of the tables is known: from the index. */
		put_number(i * 0x80ull - 0x10000ull -
				   (kind->base == FROM_PLACE ? size : 0),
			   kind->address_size);
		put_number(0x60, kind->address_size);
		put(kind->sizes, kind->sizes_size);
		put(BY("\4") OFFSET, 4);
		end_part();
	}
	place_image();
	if (kind->base != ABSOLUTE)
		return;
	/* The tables do not move when they are written again. */
	for (size_t at = cie; at < size;) {
		uint32_t length, back;
		uint64_t address;

		memcpy(&length, bytes + at, 4);
		memcpy(&back, bytes + at + 4, 4);
		memcpy(&address, bytes + at + 8, 8);
		address += image.frames;
		if (back)
			memcpy(bytes + at + 8, &address, 8);
		at += 4 + length;
	}
	place_image();
}

static void check_entry(const struct kind *kind, struct frames *frames,
			uintptr_t address, unsigned number)
{
	struct frame_range range;
	struct tables tables;
	static struct cfi_machine machine;
	uintptr_t at = address - start_of(number);
	bool is_in = at < 0x60 && kind->is != UNKNOWN;
	bool opened = eh_frame_open(address, &tables, &machine.fde);
	const struct fde *fde = &machine.fde;

	cr_assert(eq(int, opened, is_in), "%s: %lx", kind->name, (long)at);
	cr_assert(eq(int, fde_find(frames, address, &range), is_in),
		  "%s: %lx by the index", kind->name, (long)at);
	if (!is_in)
		return;
	cr_assert(eq(u64, fde->start, start_of(number)));
	cr_assert(eq(u64, fde->end, start_of(number) + 0x60));
	cr_assert(eq(u64, range.start, fde->start));
	cr_assert(eq(u64, range.end, fde->end));
	cr_assert(eq(u64, fde->code_align, 1));
	cr_assert(eq(i64, fde->data_align, -8));
	cr_assert(eq(u64, fde->return_register, 16));
	cr_assert(eq(int, fde->is_signal_frame, kind->is == SIGNAL));
	cr_assert(eq(int, fde->lsda != 0, kind->is == HANDLERS), "%s",
		  kind->name);
	cr_assert(eh_frame_find_row(&machine, address));
	cr_assert(eq(str, (char *)text_of(&machine.row),
		     at < 4 ? "r7+8" : "r7+16"));
}

static void open_index(struct frames *frames)
{
	struct view view = { image.frames, size,
			     (const unsigned char *)image.frames };

	cr_assert(fde_open(frames, &view, image.frames));
}

static void check_tables(const struct kind *kind, unsigned count)
{
	static const unsigned at[] = { 0, 1, 3, 4, 0x5f, 0x60, 0x7f };
	struct frames frames;

	write_tables(kind, count);
	open_index(&frames);
	cr_expect(not(eh_frame_open(start_of(0) - 1, &(struct tables){ 0 },
				    &(struct fde){ 0 })));
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < sizeof(at) / sizeof(at[0]); j++)
			check_entry(kind, &frames, start_of(i) + at[j], i);
	/* Not in ascending order. */
	for (unsigned i = 0; i < count; i++)
		check_entry(kind, &frames, start_of(i * 7 % count) + 5,
			    i * 7 % count);
	for (unsigned i = 0; i < count; i++) {
		struct frame_range range;
		bool found = fde_get(&frames, i, &range);

		cr_assert(eq(int, found, kind->is != UNKNOWN));
		if (found)
			cr_assert(eq(u64, range.start, start_of(i)));
	}
	cr_assert(not(fde_get(&frames, count, &(struct frame_range){ 0, 0 })));
	cr_assert(zero(uint, scans));
}

Test(eh_frame, entries_of_each_kind_are_found)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		check_tables(&kinds[i], 3);
}

Test(eh_frame, each_of_many_entries_is_found)
{
	static const unsigned counts[] = { 1, 2, 3, 4, 5, 8, 31, 100 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		check_tables(&kinds[0], counts[i]);
}

Test(eh_frame, the_address_of_the_handlers_is_relative)
{
	struct tables tables;
	struct fde fde;
	uintptr_t stored;

	write_tables(&kinds[8], 1);
	cr_assert(eh_frame_open(start_of(0), &tables, &fde));
	stored = fde.program.at - 4;
	cr_assert(eq(u64, fde.lsda, stored + 0x10));
}

/* Each byte is changed, and the tables are cut: no read leaves them, and what is found
 * contains the address. */
Test(eh_frame, damaged_tables_are_not_left, .timeout = 60)
{
	static unsigned char whole[ROOM];
	size_t whole_size;

	write_tables(&kinds[8], 2);
	memcpy(whole, bytes, size);
	whole_size = size;
	for (size_t i = 0; i < 3 * whole_size; i++) {
		static struct cfi_machine machine;
		struct tables tables;
		struct frame_range range;
		struct frames frames;
		struct view view;
		uintptr_t address;

		size = i < whole_size ? i : whole_size;
		memcpy(bytes, whole, whole_size);
		if (i >= whole_size)
			bytes[i % whole_size] ^= i < 2 * whole_size ? 0xff :
								      0x81;
		place_image();
		address = start_of(1) + 5;
		if (eh_frame_open(address, &tables, &machine.fde)) {
			cr_assert(le(u64, machine.fde.start, address));
			eh_frame_find_row(&machine, address);
		}
		view = (struct view){ image.frames, size,
				      (const unsigned char *)image.frames };
		if (fde_open(&frames, &view, image.frames) &&
		    fde_find(&frames, address, &range))
			cr_assert(range.start <= address &&
				  address < range.end);
	}
}

Test(eh_frame, an_image_without_tables_is_looked_for_once_in_20_ms)
{
	struct tables tables;
	struct fde fde;

	write_tables(&kinds[0], 1);
	image.frames = 0;
	for (unsigned i = 0; i < 5; i++)
		cr_assert(not(eh_frame_open(1, &tables, &fde)));
	cr_assert(eq(uint, scans, 1));
	time_ns += 19999999;
	cr_assert(not(eh_frame_open(1, &tables, &fde)));
	cr_assert(eq(uint, scans, 1));
	time_ns += 1;
	cr_assert(not(eh_frame_open(1, &tables, &fde)));
	cr_assert(eq(uint, scans, 2));
	time_ns += 20000000;
	write_tables(&kinds[0], 1);
	frames_of_scan = image.frames;
	image.frames = 0;
	cr_assert(eh_frame_open(frames_of_scan - 0x10000, &tables, &fde));
	cr_assert(eq(uint, scans, 3));
}

/* The kernel reads the tables of an image that may be unloaded. */
Test(eh_frame, an_image_that_is_unloaded_has_no_entries)
{
	struct tables tables;
	struct fde fde;

	write_tables(&kinds[0], 1);
	cr_assert(eh_frame_open(start_of(0), &tables, &fde));
	peek_fails = true;
	cr_assert(eh_frame_open(start_of(0), &tables, &fde));
	image.may_go = true;
	image.id++;
	cr_assert(not(eh_frame_open(start_of(0), &tables, &fde)));
	peek_fails = false;
	cr_assert(eh_frame_open(start_of(0), &tables, &fde));
	peek_fails = true;
	cr_assert(not(eh_frame_open(start_of(0), &tables, &fde)));
}

/* A search takes 17 reads for the 100,000 functions of a large library. */
Test(eh_frame, a_copy_of_the_tables_is_read_without_the_kernel)
{
	static struct cfi_machine machine;
	uintptr_t to_copy;
	struct tables tables;
	struct fde fde;

	write_tables(&kinds[8], 100);
	image.may_go = true;
	to_copy = (uintptr_t)bytes - image.frames;
	cr_assert(eh_frame_open(start_of(7), &tables, &fde));
	peeks = 0;
	cr_assert(eh_frame_open_copy(start_of(7), to_copy, &tables,
				     &machine.fde));
	cr_assert(eh_frame_find_row(&machine, start_of(7)));
	cr_assert(eq(uint, peeks, 0));
	cr_assert(eq(u64, machine.fde.start, fde.start));
	cr_assert(eq(u64, machine.fde.lsda, fde.lsda));
	cr_assert(eh_frame_open(start_of(7), &tables, &fde));
	cr_assert(gt(uint, peeks, 0));
}

Test(eh_frame, images_beyond_the_table_have_no_entries)
{
	struct tables tables;
	struct fde fde;

	write_tables(&kinds[0], 1);
	image.index = 4095;
	cr_assert(eh_frame_open(start_of(0), &tables, &fde));
	image.index = 4096;
	cr_assert(not(eh_frame_open(start_of(0), &tables, &fde)));
}

Test(eh_frame, the_end_of_a_segment_is_that_of_its_file)
{
	uint32_t word;

	write_tables(&kinds[0], 1);
	cr_assert(eq(u64, eh_frame_segment_end(image.frames),
		     image.frames + size));
	cr_assert(eq(u64, eh_frame_segment_end(image.frames + size - 1),
		     image.frames + size));
	cr_assert(eq(u64, eh_frame_segment_end(image.frames + size), 0));
	cr_assert(eq(u64, eh_frame_segment_end(image.frames - 1), 0));
	cr_assert(eh_frame_read(image.frames + size - 4, &word, 4));
	cr_assert(not(eh_frame_read(image.frames + size - 3, &word, 4)));
	cr_assert(not(eh_frame_read(image.frames - 1, &word, 4)));
	cr_assert(eh_frame_read(image.frames, &word, 4));
	cr_assert(eq(u32, word, 0x3b031b01));
	image.frames = 0;
	image.id++;
	cr_assert(eq(u64, eh_frame_segment_end(image.bias), image.bias + size));
	cr_assert(eq(u64, eh_frame_segment_end(0), 0));
}

/* --- addresses --- */

static const struct {
	unsigned encoding;
	const char *bytes;
	size_t size; /* of the bytes that are read; 0: unknown */
	uint64_t value;
} addresses[] = {
	{ 0x00, "\x81\2\3\4\5\6\7\x88", 8, 0x8807060504030281 },
	{ 0x04, "\x81\2\3\4\5\6\7\x88", 8, 0x8807060504030281 },
	{ 0x0c, "\x81\2\3\4\5\6\7\x88", 8, 0x8807060504030281 },
	{ 0x02, "\x81\x82", 2, 0x8281 },
	{ 0x0a, "\x81\x82", 2, (uint64_t)-0x7d7f },
	{ 0x0a, "\x81\x02", 2, 0x281 },
	{ 0x03, "\x81\2\3\x84", 4, 0x84030281 },
	{ 0x0b, "\x81\2\3\x84", 4, (uint64_t)-0x7bfcfd7f },
	{ 0x0b, "\x81\2\3\4", 4, 0x4030281 },
	{ 0x01, "........", 0, 0 },
	{ 0x05, "........", 0, 0 },
	{ 0x09, "........", 0, 0 },
	{ 0x0d, "........", 0, 0 },
};

/* Calls the reader with bytes, behind which nothing may be read. */
static struct cursor cursor_on(struct tables *tables, const char *text,
			       size_t length, bool may_go)
{
	*tables = (struct tables){ .low = (uintptr_t)text,
				   .high = (uintptr_t)text + length,
				   .may_go = may_go };
	return (struct cursor){ .tables = tables,
				.at = tables->low,
				.end = tables->high };
}

static void check_address(size_t i, unsigned base, uint64_t add, bool may_go)
{
	unsigned encoding = addresses[i].encoding | base;
	struct tables tables;
	struct cursor cursor;
	char bytes_ahead[8] = "";
	uint64_t value;

	memcpy(bytes_ahead, addresses[i].bytes,
	       addresses[i].size ? addresses[i].size : 8);
	cursor = cursor_on(&tables, may_go ? bytes_ahead : addresses[i].bytes,
			   8, may_go);
	value = cursor_read_address(&cursor, encoding, 0x5000);

	if (base == 0x10)
		add = tables.low;
	cr_expect(eq(int, cursor.failed,
		     addresses[i].size == 0 || base == 0x20 || base == 0x40),
		  "%x", encoding);
	if (cursor.failed) {
		cr_expect(zero(u64, value), "%x", encoding);
		return;
	}
	cr_expect(eq(u64, value, addresses[i].value + add), "%x", encoding);
	cr_expect(eq(u64, cursor.at - tables.low, addresses[i].size), "%x",
		  encoding);
	cursor = cursor_on(&tables, addresses[i].bytes, addresses[i].size - 1,
			   may_go);
	cursor_read_address(&cursor, encoding, 0);
	cr_expect(cursor.failed, "%x, cut", encoding);
}

Test(eh_frame, addresses_of_each_encoding_are_read)
{
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		for (unsigned base = 0; base < 5; base++) {
			uint64_t add = base == 3 ? 0x5000 : 0;

			check_address(i, base << 4, add, false);
			check_address(i, base << 4, add, true);
		}
}

static const struct {
	const char *bytes;
	size_t size;
	uint64_t value;
	int64_t signed_value;
} numbers[] = {
#define N(bytes, value, signed_value) \
	{ \
		bytes, sizeof(bytes) - 1, value, signed_value \
	}
	N("\0", 0, 0),
	N("\x3f", 63, 63),
	N("\x40", 64, -64),
	N("\x7f", 127, -1),
	N("\x80\1", 128, 128),
	N("\xff\x3f", 8191, 8191),
	N("\x80\x40", 8192, -8192),
	N("\x80\x80\x80\x80\x10", 1ull << 32, 1ll << 32),
	N("\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", UINT64_MAX, -1),
	N("\xff\xff\xff\xff\xff\xff\xff\xff\x7f", UINT64_MAX >> 1, -1),
	N("\x80\x80\x80\x80\x80\x80\x80\x80\x80\1", 1ull << 63, INT64_MIN),
#undef N
};

static void check_number(size_t i, bool may_go)
{
	struct tables tables;
	struct cursor cursor = cursor_on(&tables, numbers[i].bytes,
					 numbers[i].size, may_go);

	cr_expect(eq(u64, cursor_read_uleb(&cursor), numbers[i].value));
	cr_expect(eq(u64, cursor.at, cursor.end));
	cursor.at = tables.low;
	cr_expect(eq(i64, cursor_read_sleb(&cursor), numbers[i].signed_value));
	cr_expect(eq(u64, cursor.at, cursor.end));
	cr_expect(not(cursor.failed));
	cursor.at = tables.low;
	cursor.end--;
	cursor_read_uleb(&cursor);
	cr_expect(cursor.failed);
}

Test(eh_frame, numbers_of_each_length_are_read)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		check_number(i, false);
		check_number(i, true);
	}
}

/* --- single bytes --- */

#define CIE (HEAD + 8) /* with one pair */
#define FDE (CIE + 20)

/* Changes of a byte of the tables of the first kind, with one function: whether both
 * readers still find it. */
static const struct {
	const char *name;
	size_t at;
	unsigned char value;
	bool is_read, is_found;
} changes[] = {
	{ "nothing", 0, 1, true, true },
	{ "the index's version", 0, 2, false, false },
	{ "the table's base", 1, 0x0b, true, true },
	{ "the table's size", 1, 0x0f, false, false },
	{ "a table of 8 bytes", 1, 0x1c, false, false },
	{ "a signed count", 2, 0x0b, true, true },
	{ "a count of 8 bytes", 2, 0x04, false, false },
	{ "a count that is relative", 2, 0x13, false, false },
	{ "pairs of another kind", 3, 0x1b, false, false },
	{ "no pairs", 8, 0, false, false },
	{ "no such entry", HEAD + 6, 1, false, false },
	{ "a function behind", HEAD + 3, 0, false, false },
	{ "no CIE", CIE, 0, false, false },
	{ "a short CIE", CIE, 4, false, false },
	{ "a long CIE", CIE + 2, 1, false, false },
	{ "a CIE that is none", CIE + 4, 1, false, false },
	{ "version 3", CIE + 8, 3, true, true },
	{ "an absolute start", CIE + 16, 0x0b, false, false },
	{ "no length", FDE, 0, false, false },
	{ "a short entry", FDE, 8, false, false },
	{ "a long entry", FDE + 2, 1, false, false },
	{ "a CIE", FDE + 4, 0, false, false },
	{ "another CIE", FDE + 4, 4, false, false },
	{ "another start", FDE + 8, 0, false, false },
	{ "no code", FDE + 12, 0, false, false },
	{ "less code", FDE + 12, 6, true, true },
	{ "too little code", FDE + 12, 5, false, false },
};

Test(eh_frame, tables_with_one_wrong_byte_are_left_out)
{
	static unsigned char whole[ROOM];
	size_t whole_size;

	write_tables(&kinds[0], 1);
	memcpy(whole, bytes, size);
	whole_size = size;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct view view;
		struct frames frames;
		struct frame_range range;
		struct tables tables;
		struct fde fde;

		size = whole_size;
		memcpy(bytes, whole, size);
		bytes[changes[i].at] = changes[i].value;
		place_image();
		view = (struct view){ image.frames, size,
				      (const unsigned char *)image.frames };
		cr_expect(eq(int, eh_frame_open(start_of(0) + 5, &tables, &fde),
			     changes[i].is_read),
			  "%s", changes[i].name);
		cr_expect(eq(int,
			     fde_open(&frames, &view, image.frames) &&
				     fde_find(&frames, start_of(0) + 5, &range),
			     changes[i].is_found),
			  "%s by the index", changes[i].name);
	}
}
