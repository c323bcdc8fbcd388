/*
 * Line tables that the test writes byte by byte: it is libelf and libdw itself.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static unsigned allocations_left = ~0u;
static int block_count;

static void *realloc_or_fail(void *old, size_t size)
{
	void *block = allocations_left-- ? realloc(old, size) : NULL;

	block_count += block && !old;
	return block;
}

static void *calloc_or_fail(size_t count, size_t size)
{
	void *block = allocations_left-- ? calloc(count, size) : NULL;

	block_count += block != NULL;
	return block;
}

static void free_counted(void *block)
{
	block_count -= block != NULL;
	free(block);
}

#define realloc realloc_or_fail
#define calloc	calloc_or_fail
#define free	free_counted
#include "inspect/debuginfo/line_bytes.c"
#include "inspect/debuginfo/line_header.c"
#include "inspect/debuginfo/linetable.c"
#undef realloc
#undef calloc
#undef free

/* --- the file: three sections, and units of .debug_info --- */

#define PAGES (64u << 10)

enum { LINE = 1, LINE_STR, STR, SECTIONS };

static const char *const section_names[] = { "", ".debug_line",
					     ".debug_line_str", ".debug_str" };

/* Each section ends where nothing is mapped. */
static struct section {
	unsigned char bytes[PAGES]; /* what the test has written */
	size_t size;
	unsigned char *end;
	Elf_Data data;
	uint64_t flags;
	bool is_missing;
} sections[SECTIONS];

static struct {
	long table; /* -1: none */
	const char *directory;
} units[4];
static uintptr_t unit_count;

Dwarf *file_open(const struct debuginfo_question *question,
		 struct debuginfo_answer *answer)
{
	(void)answer;
	return question->image ? (Dwarf *)sections : NULL;
}

Elf *file_elf(const struct debuginfo_question *question)
{
	(void)question;
	return (Elf *)sections;
}

int elf_getshdrstrndx(Elf *elf, size_t *table)
{
	(void)elf;
	*table = 5;
	return 0;
}

Elf_Scn *elf_nextscn(Elf *elf, Elf_Scn *section)
{
	uintptr_t next = (uintptr_t)section + 1;

	(void)elf;
	return next < SECTIONS ? (Elf_Scn *)next : NULL;
}

GElf_Shdr *gelf_getshdr(Elf_Scn *section, GElf_Shdr *header)
{
	const struct section *of = &sections[(uintptr_t)section];

	header->sh_name = (Elf64_Word)(uintptr_t)section;
	header->sh_flags = of->flags;
	return of->is_missing ? NULL : header;
}

char *elf_strptr(Elf *elf, size_t table, size_t offset)
{
	(void)elf;
	cr_assert(eq(sz, table, 5));
	return (char *)section_names[offset];
}

Elf_Data *elf_rawdata(Elf_Scn *section, Elf_Data *data)
{
	struct section *of = &sections[(uintptr_t)section];

	(void)data;
	if (!of->end) {
		char *memory = mmap(NULL, PAGES + 4096, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		cr_assert(memory != MAP_FAILED);
		cr_assert(zero(int, mprotect(memory + PAGES, 4096, PROT_NONE)));
		of->end = (unsigned char *)memory + PAGES;
	}
	of->data.d_buf = of->end - of->size;
	of->data.d_size = of->size;
	memcpy(of->data.d_buf, of->bytes, of->size);
	return &of->data;
}

int dwarf_get_units(Dwarf *dwarf, Dwarf_CU *cu, Dwarf_CU **next_cu,
		    Dwarf_Half *version, uint8_t *type, Dwarf_Die *unit,
		    Dwarf_Die *split)
{
	uintptr_t index = (uintptr_t)cu;

	(void)dwarf, (void)version, (void)type, (void)split;
	if (index == unit_count)
		return 1;
	*next_cu = (Dwarf_CU *)(index + 1);
	unit->addr = (void *)index;
	return 0;
}

Dwarf_Attribute *dwarf_attr(Dwarf_Die *die, unsigned name,
			    Dwarf_Attribute *attribute)
{
	attribute->code = name;
	attribute->valp = die->addr;
	return attribute;
}

int dwarf_formudata(Dwarf_Attribute *attribute, Dwarf_Word *value)
{
	long table = units[(uintptr_t)attribute->valp].table;

	cr_assert(eq(uint, attribute->code, DW_AT_stmt_list));
	*value = (Dwarf_Word)table;
	return table < 0 ? -1 : 0;
}

const char *dwarf_formstring(Dwarf_Attribute *attribute)
{
	cr_assert(eq(uint, attribute->code, DW_AT_comp_dir));
	return units[(uintptr_t)attribute->valp].directory;
}

/* --- writing --- */

static void put(unsigned section, const void *bytes, size_t size)
{
	struct section *to = &sections[section];

	cr_assert(to->size + size <= PAGES);
	memcpy(to->bytes + to->size, bytes, size);
	to->size += size;
}

static void put_number(uint64_t number, size_t size)
{
	put(LINE, &number, size);
}

static size_t unit_start, header_start;

static void end_header(void)
{
	uint32_t size = (uint32_t)(sections[LINE].size - header_start - 4);

	memcpy(&sections[LINE].bytes[header_start], &size, 4);
}

static void end_unit(void)
{
	uint32_t size = (uint32_t)(sections[LINE].size - unit_start - 4);

	memcpy(&sections[LINE].bytes[unit_start], &size, 4);
}

struct form {
	unsigned minimum, opcode_base;
	bool is_statement;
};

static const struct form usual = { 1, 13, true };

static void begin_unit(unsigned version, const struct form *form)
{
	static const char lengths[] = "\0\1\1\1\1\0\0\0\1\0\0\1\2\0\3";

	unit_start = sections[LINE].size;
	put_number(0, 4);
	put_number(version, 2);
	if (version >= 5)
		put_number(8, 2);
	header_start = sections[LINE].size;
	put_number(0, 4);
	put_number(form->minimum, 1);
	if (version >= 4)
		put_number(1, 1);
	put_number(form->is_statement, 1);
	put_number(0xfd, 1); /* lines from -3 on */
	put_number(12, 1);
	put_number(form->opcode_base, 1);
	put(LINE, lengths, form->opcode_base - 1);
}

#define PUT(bytes) put(LINE, bytes, sizeof(bytes) - 1)

#define OLD_NAMES \
	"/d\0sub\0\0" \
	"a.c\0\1\0\0b.c\0\2\1\1/x/../abs.c\0\2\0\0e.c\0\0\0\0" \
	"./y/.././/f.c\0\2\0\0../../../g.c\0\2\0\0h.c\0\7\0\0\0"

/* A unit with the files 1 to 7, and this program. */
static void put_unit(const struct form *form, const char *program, size_t size)
{
	begin_unit(4, form);
	PUT(OLD_NAMES);
	end_header();
	put(LINE, program, size);
	end_unit();
}

static void clear(void)
{
	for (unsigned i = 0; i < SECTIONS; i++)
		sections[i].size = 0;
	units[0].directory = "/comp";
	units[0].table = 0;
	unit_count = 1;
}

/* --- reading --- */

static const struct debuginfo_question question = {
	.image = 1,
	.range_count = 2,
	.ranges = { { 0x1000, 0x1000 }, { 0x5000, 0x10 } },
};

static const struct debuginfo_lines *lines;
static char text[PAGES];

static const char *file_at(uint32_t number)
{
	const char *name = lines->files;

	cr_assert(lt(u32, number, lines->file_count));
	while (number--)
		name += strlen(name) + 1;
	return name;
}

/* The rows as text: address, line, file and column. */
static int read_table(void)
{
	struct debuginfo_answer answer = { .data = NULL };
	int r = linetable_read(&question, &answer);
	size_t length = 0;

	text[0] = '\0';
	lines = answer.data;
	if (r < 0)
		return r;
	cr_assert(eq(u64, answer.count, lines->row_count));
	for (uint64_t i = 0; i < answer.count; i++) {
		const struct debuginfo_row *row = &lines->rows[i];

		length += (size_t)snprintf(
			text + length, sizeof(text) - length, "%lx:%u:%s:%u ",
			(unsigned long)row->address, row->line,
			row->line ? file_at(row->file) : "", row->column);
	}
	return 0;
}

static void expect_table(const char *expected, const char *what)
{
	int r = read_table();

	cr_expect(eq(int, r, *expected ? 0 : -ENOENT), "%s", what);
	cr_expect(eq(str, text, (char *)expected), "%s", what);
}

/* --- tests --- */

#define AT(high)  "\0\x09\x02\0" high "\0\0\0\0\0\0"
#define COPY	  "\1"
#define BY(bytes) "\2" bytes
#define END	  "\0\1\1"

static const struct {
	const char *name, *program;
	size_t size;
	struct form form;
	const char *rows;
} programs[] = {
#define P(name, program, rows) \
	{ \
		name, program, sizeof(program) - 1, { 1, 13, true }, rows \
	}
#define Q(name, form, program, rows) \
	{ \
		name, program, sizeof(program) - 1, form, rows \
	}
#define FORM(...) \
	{ \
		__VA_ARGS__ \
	}
#include "linetable_programs.def"
#undef P
#undef Q
#undef FORM
};

Test(linetable, each_program_has_its_rows)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		clear();
		put_unit(&programs[i].form, programs[i].program,
			 programs[i].size);
		expect_table(programs[i].rows, programs[i].name);
	}
}

/* --- headers --- */

#define FIRST_FILE  AT("\x10") "\4\1" COPY BY("\4") END
#define SECOND_FILE AT("\x11") "\4\2" COPY BY("\4") END

#define NOTHING_8 "\0\0\0\0\0\0\0\0"
#define ONES_8	  "\1\1\1\1\1\1\1\1"

static const struct {
	const char *name, *names;
	size_t size;
	const char *rows;
} headers[] = {
#define P(name, names, rows) \
	{ \
		name, names, sizeof(names) - 1, rows \
	}
#include "linetable_headers.def"
#undef P
};

static void put_new_unit(const char *list, size_t size)
{
	begin_unit(5, &usual);
	put(LINE, list, size);
	end_header();
	PUT(FIRST_FILE SECOND_FILE);
	end_unit();
}

Test(linetable, each_header_has_its_names)
{
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
		clear();
		put(LINE_STR, "/dir\0/line", 11);
		put(STR, "str\0x\0", 6);
		put_new_unit(headers[i].names, headers[i].size);
		expect_table(headers[i].rows, headers[i].name);
	}
}

/* The only byte that differs from a header that is read. */
static const struct {
	const char *name;
	size_t at;
	unsigned char value;
	unsigned version;
	bool is_read;
} bytes[] = {
	{ "nothing", 0, 0, 4, true },
	{ "version 1", 4, 1, 4, false },
	{ "version 2", 4, 2, 2, true },
	{ "version 3", 4, 3, 3, true },
	{ "version 6", 4, 6, 4, false },
	{ "version 260", 5, 1, 4, false },
	{ "a size of the header that is too large", 8, 1, 4, false },
	{ "no line range", 14, 0, 4, false },
	{ "no opcodes", 15, 0, 4, false },
	{ "version 5", 0, 0, 5, true },
	{ "addresses of four bytes", 6, 4, 5, false },
	{ "segments", 7, 1, 5, false },
};

static void put_either_unit(unsigned version)
{
	begin_unit(version, &usual);
	if (version < 5)
		PUT(OLD_NAMES);
	else
		PUT("\1\1\x08\1/d\0\1\1\x08\2z\0a.c\0");
	end_header();
	PUT(FIRST_FILE);
	end_unit();
}

Test(linetable, each_wrong_header_is_left_out)
{
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
		clear();
		put_either_unit(bytes[i].version);
		if (bytes[i].at)
			sections[LINE].bytes[bytes[i].at] = bytes[i].value;
		put_unit(&usual, SECOND_FILE, sizeof(SECOND_FILE) - 1);
		expect_table(bytes[i].is_read ?
				     "1000:1:/d/a.c:0 1100:1:/sub/b.c:0 " :
				     "1100:1:/sub/b.c:0 ",
			     bytes[i].name);
	}
}

Test(linetable, the_directory_is_that_of_the_unit_with_the_table)
{
	static const char program[] = AT("\x11") "\4\4" COPY BY("\1") END;

	clear();
	put_unit(&usual, FIRST_FILE, sizeof(FIRST_FILE) - 1);
	units[0].table = -1;
	units[1].table = (long)sections[LINE].size;
	units[1].directory = "/second";
	units[2].table = 0;
	units[2].directory = NULL;
	unit_count = 3;
	put_unit(&usual, program, sizeof(program) - 1);
	expect_table("1000:1:/d/a.c:0 1100:1:/second/e.c:0 ", "two units");
	units[1].directory = NULL;
	expect_table("1000:1:/d/a.c:0 1100:1:/e.c:0 ", "no directory");
	unit_count = 0;
	expect_table("1000:1:/d/a.c:0 1100:1:/e.c:0 ", "no units");
}

/* Reads nothing beyond the sections: nothing is mapped there. */
Test(linetable, a_table_cut_anywhere_loses_only_what_is_cut)
{
	size_t whole;

	for (unsigned version = 2; version <= 5; version++) {
		clear();
		put_either_unit(version);
		whole = sections[LINE].size;
		for (size_t size = 0; size < whole; size++) {
			sections[LINE].size = size;
			expect_table("", "cut");
		}
		/* The unit is cut, and knows it. */
		sections[LINE].size = whole;
		for (size_t size = 0; size + 4 < whole; size++) {
			sections[LINE].bytes[0] = (unsigned char)size;
			sections[LINE].size = size + 4;
			expect_table("", "cut unit");
		}
	}
}

/* The program begins in the header.  The second unit is read. */
Test(linetable, a_header_cut_anywhere_is_left_out)
{
	for (unsigned version = 2; version <= 5; version++) {
		unsigned char *size =
			&sections[LINE].bytes[version < 5 ? 6 : 8];
		unsigned whole;

		clear();
		put_either_unit(version);
		put_unit(&usual, SECOND_FILE, sizeof(SECOND_FILE) - 1);
		whole = *size;
		for (*size = 0; *size < whole; (*size)++)
			expect_table("1100:1:/sub/b.c:0 ", "cut header");
	}
	/* Its names end nowhere. */
	clear();
	begin_unit(4, &usual);
	PUT("name");
	end_unit();
	expect_table("", "no header");
}

Test(linetable, a_unit_of_64_bits_is_read)
{
	unsigned char *header = sections[LINE].bytes;

	clear();
	put(LINE_STR, "/line\0", 7);
	put(STR, "str\0x", 6);
	PUT("\xff\xff\xff\xff" NOTHING_8 "\5\0\x08\0" NOTHING_8
	    "\1\1\1\xfd\x0c\x0d\0\1\1\1\1\0\0\0\1\0\0\1"
	    "\1\1\x1f\1" NOTHING_8 "\3\1\x0e\2\x0b\3\x17\3" NOTHING_8
	    "\0" NOTHING_8 "\4\0\0\0\0\0\0\0\0" NOTHING_8
	    "\1\0\0\0\0\0\0\0\0" NOTHING_8);
	header[16] = (unsigned char)(sections[LINE].size - 24);
	PUT(FIRST_FILE SECOND_FILE);
	header[4] = (unsigned char)(sections[LINE].size - 12);
	expect_table("1000:1:/line/x:0 1100:1:/line/tr:0 ", "64 bits");
}

/* 512 names, of which each is stored once; then those of another image. */
Test(linetable, each_name_is_stored_once)
{
	char name[32];

	for (unsigned round = 0; round < 2; round++) {
		clear();
		for (unsigned i = 0; i < 1024; i++) {
			begin_unit(4, &usual);
			PUT("/d\0\0");
			snprintf(name, sizeof(name), "%u-%u.c", round, i % 512);
			put(LINE, name, strlen(name) + 1);
			PUT("\1\0\0\0");
			end_header();
			PUT("\0\x09\2");
			put_number(0x1000 + i * 2, 8);
			PUT(COPY BY("\2") END);
			end_unit();
		}
		cr_assert(zero(int, read_table()));
		cr_assert(eq(u64, lines->row_count, 1024));
		cr_assert(eq(u32, lines->file_count, 512));
		for (unsigned i = 0; i < 1024; i++) {
			snprintf(name, sizeof(name), "/d/%u-%u.c", round,
				 i % 512);
			cr_assert(eq(str, (char *)file_at(lines->rows[i].file),
				     name));
		}
		cr_assert(eq(u32, lines->files_size,
			     (uint32_t)(file_at(511) + strlen(name) + 1 -
					lines->files)));
	}
}

Test(linetable, rows_that_contradict_others_are_counted)
{
	static const char program[] = AT("\x10") COPY BY("\1") "\x11" BY("\3")
		END AT("\x10") COPY BY("\5") END AT("\x10") COPY BY("\6")
			END AT("\x11") COPY BY("\1") END;

	clear();
	put_unit(&usual, program, sizeof(program) - 1);
	expect_table("1100:1:/d/a.c:0 ", "three sequences");
	cr_assert(eq(u64, lines->dropped, 4));
}

/* Inline functions have the same rows in each unit.  The row behind those of a sequence
 * may be of its last address, too, but belongs to the next. */
Test(linetable, sequences_with_the_same_addresses_do_not_contradict)
{
	static const char program[] = AT("\x10") COPY BY("\3") END AT("\x10")
		COPY BY("\3") END AT("\x10") COPY BY("\3") END;

	clear();
	put_unit(&usual, program, sizeof(program) - 1);
	expect_table("1000:1:/d/a.c:0 ", "three times");
	cr_assert(zero(u64, lines->dropped));
}

/* Each allocation fails once: without the names of some files, or without a table. */
Test(linetable, a_table_is_whole_or_missing_without_memory)
{
	unsigned room, failures = 0;

	clear();
	put_either_unit(5);
	put_unit(&usual, SECOND_FILE, sizeof(SECOND_FILE) - 1);
	for (room = 0; room < 100; room++) {
		linetable_forget();
		allocations_left = room;
		if (read_table() == 0 &&
		    strcmp(text, "1000:1:/d/a.c:0 1100:1:/sub/b.c:0 ") == 0)
			break;
		failures++;
	}
	cr_assert(lt(uint, room, 100));
	cr_assert(gt(uint, failures, 5));
	allocations_left = ~0u;
	expect_table("1000:1:/d/a.c:0 1100:1:/sub/b.c:0 ", "afterwards");
}

/* The names, their places and slots, and the rows. */
Test(linetable, only_the_result_is_kept)
{
	for (unsigned round = 0; round < 3; round++) {
		clear();
		put_either_unit(5);
		put_unit(&usual, SECOND_FILE, sizeof(SECOND_FILE) - 1);
		expect_table("1000:1:/d/a.c:0 1100:1:/sub/b.c:0 ", "again");
		cr_assert(eq(int, block_count, 4));
	}
}

/* The process that asked has the memory of the first table. */
Test(linetable, a_table_that_is_forgotten_stays_as_it_is)
{
	struct debuginfo_lines first;

	clear();
	put_either_unit(5);
	expect_table("1000:1:/d/a.c:0 ", "first");
	first = *lines;
	linetable_forget();
	clear();
	put_unit(&usual, SECOND_FILE, sizeof(SECOND_FILE) - 1);
	expect_table("1100:1:/comp/sub/b.c:0 ", "second");
	cr_assert(eq(u64, first.rows[0].address, 0x1000));
	cr_assert(eq(str, (char *)first.files, "/d/a.c"));
	cr_assert(eq(int, block_count, 8));
}

Test(linetable, a_file_without_a_table_has_no_rows)
{
	const struct debuginfo_question none = { .image = 0 };
	struct debuginfo_answer answer = { .data = NULL };

	clear();
	put_either_unit(4);
	expect_table("1000:1:/d/a.c:0 ", "before");
	cr_assert(eq(int, linetable_read(&none, &answer), -ENOENT));
	sections[LINE].flags = SHF_COMPRESSED;
	expect_table("", "compressed");
	sections[LINE].flags = 0;
	sections[LINE].is_missing = true;
	expect_table("", "missing");
	sections[LINE].is_missing = false;
	sections[STR].is_missing = sections[LINE_STR].is_missing = true;
	expect_table("1000:1:/d/a.c:0 ", "only the table");
}
