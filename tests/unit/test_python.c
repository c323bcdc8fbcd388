/*
 * The frames of CPython, in an interpreter that the test makes: its lists, its frames, code
 * objects and strings, with the offsets of each version that is known.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "../../hooks/sampling/python.c"

/* --- what it needs of shim --- */

#define EVAL	  0x400000u
#define EVAL_SIZE 0x1000u
#define MADE	  0x700000u /* code that is of no image */
#define OURS	  4711u	    /* thread */

static uintptr_t memory[8192];
static uintptr_t version;
static unsigned logged;
static uintptr_t unreadable;
static _Alignas(16) char mapped[1 << 16];
static size_t mapped_size;

static uintptr_t *words_at(size_t offset)
{
	return memory + offset / sizeof(*memory);
}

/* Where what lies in the memory. */
enum {
	RUNTIME = 0x100,
	CODE_TYPE = 0x400,
	INTERPRETER = 0x800, /* two */
	STATE = 0x1000,	     /* four */
	C_FRAME = 0x1c00,
	FRAME = 0x2000, /* six */
	CODE = 0x3000,	/* four */
	TEXT = 0x4000,
	TABLE = 0x5000,
	STEP = 0x100,
};

static uintptr_t address(size_t offset)
{
	return (uintptr_t)memory + offset;
}

void *shim_symbol_find_in(shim_image image, const char *name, size_t *size)
{
	cr_assert(eq(u64, (uint64_t)image, 7));
	*size = 0;
	if (strcmp(name, "_PyRuntime") == 0)
		return words_at(RUNTIME);
	if (strcmp(name, "PyCode_Type") == 0)
		return words_at(CODE_TYPE);
	if (strcmp(name, "Py_Version") == 0)
		return &version;
	cr_assert(eq(str, (char *)name, "_PyEval_EvalFrameDefault"));
	*size = EVAL_SIZE;
	return (void *)(uintptr_t)EVAL;
}

void *shim_symbol_find(const char *name, size_t *size)
{
	(void)name, (void)size;
	return NULL;
}

void shim_symbol_expect(const char *symbol)
{
	(void)symbol;
}

bool shim_memory_read(void *to, const void *from, size_t size)
{
	uintptr_t at = (uintptr_t)from;
	bool is_version = at == (uintptr_t)&version;

	if (!is_version &&
	    (at < address(0) || at + size > address(sizeof(memory)) ||
	     (at <= unreadable && unreadable < at + size)))
		return false;
	memcpy(to, from, size);
	return true;
}

void *shim_memory_map(size_t size)
{
	size_t at = mapped_size;

	mapped_size += (size + 15) & ~15ul;
	cr_assert(le(sz, mapped_size, sizeof(mapped)));
	return mapped + at;
}

void shim_record_log(const char *line)
{
	cr_expect(strstr(line, "3.11 to 3.13") != NULL);
	logged++;
}

uint32_t shim_thread_id(void)
{
	return OURS;
}

enum shim_result shim_image_from_address(const void *at, shim_image *image)
{
	*image = 7;
	return (uintptr_t)at == MADE ? SHIM_E_FAIL : SHIM_OK;
}

/* --- the interpreter --- */

static const struct offsets *made;

static void put(size_t offset, uintptr_t value)
{
	memcpy((char *)memory + offset, &value, sizeof(value));
}

static void put_byte(size_t offset, unsigned value)
{
	((unsigned char *)memory)[offset] = (unsigned char)value;
}

/* A string of @length characters of @kind bytes; returns its address. */
static uintptr_t put_text(size_t at, const void *text, size_t length,
			  unsigned kind, bool is_ascii)
{
	put(at + OBJECT_SIZE_AT, length);
	put(at + STRING_STATE, kind << 2 | 1u << 5 | (uintptr_t)is_ascii << 6);
	memcpy((char *)memory + at + (is_ascii ? made->ascii : made->text),
	       text, length * kind);
	return address(at);
}

static void put_code(size_t at, const char *name, uintptr_t table)
{
	put(at + OBJECT_TYPE, address(CODE_TYPE));
	put(at + made->first_line, 10);
	put(at + made->name,
	    put_text(TEXT + (at - CODE), name, strlen(name), 1, true));
	put(at + made->file, put_text(TEXT + 4 * STEP, "a.py", 4, 1, true));
	put(at + made->table, table);
}

/* The last of a group is an entry of 3.11; later versions have a frame more. */
static void put_frame(unsigned number, unsigned code, unsigned unit,
		      bool is_last)
{
	size_t at = FRAME + number * STEP;

	put(at + made->code, address(CODE + code * STEP));
	put(at + made->previous,
	    at + STEP < FRAME + 6 * STEP ? address(at + STEP) : 0);
	put(at + made->instruction,
	    address(CODE + code * STEP + made->bytes + unit * 2));
	if (made->is_entry)
		put_byte(at + made->is_entry, is_last);
}

static void put_c_frame(unsigned number)
{
	put_frame(number, 0, 0, false);
	put_byte(FRAME + number * STEP + made->owner, OWNED_BY_C_STACK);
}

static void make_lists(void)
{
	static const struct {
		unsigned tid, next; /* state */
	} states[] = { { 1, 0 }, { 2, 3 }, { 3, 4 }, { OURS, 0 } };
	size_t interpreters = made->interpreters ? made->interpreters : 80;
	size_t next = made->interpreters ? made->next_interpreter : 24;
	size_t threads = made->interpreters ? made->threads : 32;
	size_t last = STATE + 3 * STEP;

	memcpy(words_at(RUNTIME), DEBUG_COOKIE, 8);
	put(RUNTIME + DEBUG_NEXT, next);
	put(RUNTIME + DEBUG_THREADS, threads);
	put(RUNTIME + interpreters, address(INTERPRETER));
	if (!made->interpreters)
		put(RUNTIME + DEBUG_INTERPRETERS, interpreters);
	put(INTERPRETER + next, address(INTERPRETER + STEP));
	put(INTERPRETER + threads, address(STATE));
	put(INTERPRETER + STEP + threads, address(STATE + STEP));
	for (unsigned i = 0; i < 4; i++) {
		put(STATE + i * STEP + made->thread_id, states[i].tid);
		if (states[i].next)
			put(STATE + i * STEP + made->next_thread,
			    address(STATE + (states[i].next - 1) * STEP));
	}
	if (made->c_frame)
		put(last + made->c_frame, address(C_FRAME));
	put((made->c_frame ? C_FRAME : last) + made->current_frame,
	    address(FRAME));
}

static void make_interpreter(const struct offsets *of)
{
	made = of;
	version = (uintptr_t)of->version << 16 | 0x4f0;
	make_lists();
	put_code(CODE, "inner", 0);
	put_code(CODE + STEP, "middle", 0);
	put_code(CODE + 2 * STEP, "outer", 0);
	python_image_loaded(7);
}

#define LINES_OF(code) (CODE_FIRST + (code) * (uint64_t)CODE_LINES)

static const struct shim_code_node *nodes[8];

static void *allocate(void *argument, size_t size)
{
	unsigned *count = argument;
	void *node = shim_memory_map(size);

	cr_assert(lt(u32, *count, 8));
	nodes[(*count)++] = node;
	return node;
}

static void check_node(const struct shim_code_node *node, unsigned number,
		       const char *name)
{
	size_t size = strlen(name);

	cr_expect(eq(u64, node->function, SHIM_NODE_CODE));
	cr_expect(eq(u64, node->address, LINES_OF(number)));
	cr_expect(eq(u32, node->lines, CODE_LINES));
	cr_expect(eq(u32, node->first_line, 10));
	cr_assert(eq(sz, node->name_size, size));
	cr_expect(zero(int, memcmp(node->text, name, size)));
	cr_assert(eq(u32, node->file_size, 4));
	cr_expect(zero(int, memcmp(node->text + size, "a.py", 4)));
}

/* Two calls of the interpreter, of two functions and one. */
static void check_stack(void)
{
	const uintptr_t stack[] = { 0x100, EVAL,
				    0x200, EVAL + EVAL_SIZE - 1,
				    MADE,  EVAL + EVAL_SIZE };
	uintptr_t want[] = { 0x100, LINES_OF(0), LINES_OF(1),
			     0x200, LINES_OF(2), EVAL + EVAL_SIZE };
	struct python_thread *thread = NULL;
	unsigned n = 0, named = 0;
	uintptr_t mixed[8];

	put_frame(n++, 0, 0, false);
	put_frame(n++, 1, 0, true);
	if (!made->is_entry)
		put_c_frame(n++);
	put_frame(n++, 2, 0, true);
	/* The lists go on with what is no code. */
	if (!made->is_entry)
		put_c_frame(n++);
	put_frame(n, 3, 0, true);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert(eq(u32,
			     python_mix(&thread, allocate, &named, stack, 6,
					mixed, 8),
			     6));
		for (unsigned k = 0; k < 6; k++)
			cr_expect(eq(u64, mixed[k], want[k]), "%u", k);
	}
	cr_expect(eq(u32, named, 3));
	check_node(nodes[0], 0, "inner");
	check_node(nodes[1], 1, "middle");
	check_node(nodes[2], 2, "outer");
	cr_expect(eq(u32,
		     python_mix(&thread, allocate, &named, stack, 6, mixed, 2),
		     2));
	cr_expect(zero(u32, python_mix(&thread, allocate, &named, stack, 1,
				       mixed, 8)));
}

static void check_version(unsigned number)
{
	make_interpreter(&known[number]);
	cr_assert(python_is_there());
	cr_expect(zero(u32, logged));
	check_stack();
	python_image_unloaded(EVAL + 1, EVAL + 10);
	cr_expect(python_is_there());
	python_image_unloaded(EVAL - 1, EVAL + 1);
	cr_expect(not(python_is_there()));
}

Test(python, functions_of_3_11_replace_the_interpreter)
{
	check_version(0);
}

Test(python, functions_of_3_12_replace_the_interpreter)
{
	check_version(1);
}

Test(python, functions_of_3_13_replace_the_interpreter)
{
	check_version(2);
}

Test(python, other_versions_are_told)
{
	const struct offsets others[] = { { .version = 0x30a },
					  { .version = 0x30e } };

	for (unsigned i = 0; i < 2; i++) {
		make_interpreter(&others[i]);
		cr_expect(not(python_is_there()));
		cr_expect(eq(u32, logged, i + 1));
	}
}

Test(python, the_offsets_of_3_13_have_a_cookie_and_16_bits)
{
	static const size_t at[] = { DEBUG_INTERPRETERS, DEBUG_NEXT,
				     DEBUG_THREADS };

	made = &known[2];
	version = 0x30d0000;
	for (unsigned i = 0; i < 3; i++) {
		make_lists();
		put(RUNTIME + at[i], UINT16_MAX + 1);
		python_image_loaded(7);
		cr_expect(not(python_is_there()), "%u", i);
		make_lists();
		unreadable = address(RUNTIME + at[i]);
		python_image_loaded(7);
		cr_expect(not(python_is_there()), "%u", i);
		unreadable = 0;
	}
	put_byte(RUNTIME, 'y');
	python_image_loaded(7);
	cr_expect(not(python_is_there()));
	cr_expect(eq(u32, logged, 7));
}

Test(python, a_thread_without_python_is_tried_again_after_256_samples)
{
	const uintptr_t stack[] = { EVAL };
	struct python_thread *thread = NULL;
	unsigned named = 0;
	uintptr_t mixed[4];

	make_interpreter(&known[0]);
	put_frame(0, 0, 0, true);
	put(STATE + 3 * STEP + made->thread_id, OURS + 1);
	cr_expect(zero(u32, python_mix(&thread, allocate, &named, stack, 1,
				       mixed, 4)));
	put(STATE + 3 * STEP + made->thread_id, OURS);
	for (unsigned i = 0; i < 256; i++)
		cr_expect(zero(u32, python_mix(&thread, allocate, &named, stack,
					       1, mixed, 4)));
	cr_expect(eq(u32,
		     python_mix(&thread, allocate, &named, stack, 1, mixed, 4),
		     1));
}

/* --- texts --- */

static const uint32_t characters[] = { 'a',	0x7f,	 0x80,	  0xe9,
				       0x7ff,	0x800,	 0x20ac,  0xffff,
				       0x10000, 0x1f600, 0x10ffff };
static const char utf8[] = "a\x7f\xc2\x80\xc3\xa9"
			   "\xdf\xbf\xe0\xa0\x80\xe2\x82\xac\xef\xbf\xbf"
			   "\xf0\x90\x80\x80\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf";

static struct python_thread reader;
static char text[512];

/* Reads the first @count of the characters, of @kind bytes each. */
static uint32_t read_characters(size_t count, unsigned kind, uint32_t room)
{
	unsigned char bytes[sizeof(characters)];

	memset(text, '#', sizeof(text));
	for (size_t i = 0; i < count; i++)
		memcpy(bytes + i * kind, &characters[i], kind);
	return read_text(&reader, put_text(TEXT, bytes, count, kind, false),
			 text, room);
}

Test(python, names_are_in_utf_8)
{
	static const struct {
		unsigned kind, count, size;
	} cases[] = { { 1, 4, 6 }, { 2, 8, 17 }, { 4, 11, 29 } };

	make_interpreter(&known[0]);
	cr_assert(eq(sz, sizeof(utf8) - 1, 29));
	for (unsigned i = 0; i < 3; i++) {
		cr_expect(eq(u32,
			     read_characters(cases[i].count, cases[i].kind,
					     sizeof(text)),
			     cases[i].size));
		cr_expect(zero(int, memcmp(text, utf8, cases[i].size)));
	}
}

Test(python, of_a_text_without_room_the_end_is_read)
{
	char digits[400];

	make_interpreter(&known[0]);
	for (unsigned i = 0; i < sizeof(digits); i++)
		digits[i] = (char)('0' + i % 10);
	put_text(TEXT, digits, sizeof(digits), 1, true);
	cr_expect(eq(u32, read_text(&reader, address(TEXT), text, 300), 256));
	cr_expect(zero(int, memcmp(text, digits + 144, 256)));
	/* An ASCII character might take four bytes. */
	cr_expect(eq(u32, read_text(&reader, address(TEXT), text, 20), 17));
	cr_expect(zero(int, memcmp(text, digits + 380, 17)));
	/* No character is cut. */
	for (uint32_t room = 0; room < 40; room++) {
		uint32_t size = read_characters(4, 1, room);

		cr_expect(le(u32, size, room));
		cr_expect(eq(int, text[size], '#'));
	}
}

Test(python, what_is_no_string_has_no_text)
{
	static const uintptr_t states[] = { 1 << 2, 1 << 5, 3 << 2 | 1 << 5,
					    5 << 2 | 1 << 5 };

	make_interpreter(&known[0]);
	put_text(TEXT, "abcd", 4, 1, true);
	for (unsigned i = 0; i < 4; i++) {
		put(TEXT + STRING_STATE, states[i]);
		cr_expect(zero(u32, read_text(&reader, address(TEXT), text,
					      sizeof(text))),
			  "%u", i);
	}
}

/* --- lines --- */

Test(python, each_instruction_has_its_line)
{
	/* The size in units less 1, and the kind; then the line and columns.  See
	 * Objects/locations.md. */
	static const unsigned char table[] = {
		0x80 | 13 << 3,	   4,			 /* 2 lines more */
		0x80 | 9 << 3 | 1, 0,			 /* the same line */
		0x80 | 12 << 3,	   1,	     2,		 /* 2 more */
		0x80 | 15 << 3,				 /* no line */
		0x80 | 14 << 3,	   0x40 | 4, 3, 1, 2, 3, /* 98 more */
		0x80 | 13 << 3,	   3,			 /* one less */
		0x80 | 10 << 3,	   1,	     2,		 /* the same */
		0x80 | 11 << 3,	   1,	     2,		 /* one more */
	};
	static const unsigned want[] = {
		2, 2, 2, 4, 4, 102, 101, 101, 102, 102
	};
	const uintptr_t stack[] = { EVAL };
	struct python_thread *thread = NULL;
	unsigned named = 0;
	uintptr_t mixed[4];

	make_interpreter(&known[0]);
	put(TABLE + OBJECT_SIZE_AT, sizeof(table));
	memcpy(words_at(TABLE + BYTES_TEXT), table, sizeof(table));
	put_code(CODE, "inner", address(TABLE));
	for (unsigned unit = 0; unit < 10; unit++) {
		put_frame(0, 0, unit, true);
		cr_assert(eq(u32,
			     python_mix(&thread, allocate, &named, stack, 1,
					mixed, 4),
			     1));
		cr_expect(eq(u64, mixed[0], LINES_OF(0) + want[unit]), "%u",
			  unit);
	}
}

Test(python, a_table_of_lines_is_read_to_its_end)
{
	const unsigned last = 1000;
	const uintptr_t stack[] = { EVAL };
	struct python_thread *thread = NULL;
	unsigned named = 0;
	uintptr_t mixed[4];

	make_interpreter(&known[0]);
	put(TABLE + OBJECT_SIZE_AT, last * 3);
	for (unsigned i = 0; i < last; i++)
		put_byte(TABLE + BYTES_TEXT + i * 3, 0x80 | 11 << 3);
	put_code(CODE, "inner", address(TABLE));
	for (unsigned unit = 0; unit < last; unit += 37) {
		put_frame(0, 0, unit, true);
		python_mix(&thread, allocate, &named, stack, 1, mixed, 4);
		cr_expect(eq(u64, mixed[0], LINES_OF(0) + unit + 1));
	}
	/* Before the first instruction, and too far from it. */
	put(FRAME + made->instruction, address(CODE + made->bytes) - 2);
	python_mix(&thread, allocate, &named, stack, 1, mixed, 4);
	cr_expect(eq(u64, mixed[0], LINES_OF(0)));
	put_frame(0, 0, (1u << 24) + 1, true);
	python_mix(&thread, allocate, &named, stack, 1, mixed, 4);
	cr_expect(eq(u64, mixed[0], LINES_OF(0)));
}

Test(python, a_frame_that_cannot_be_read_leaves_the_interpreter)
{
	const uintptr_t stack[] = { EVAL, 0x100 };
	struct python_thread *thread = NULL;
	unsigned named = 0;
	uintptr_t mixed[4];

	make_interpreter(&known[0]);
	put_frame(0, 3, 0, true); /* no code */
	for (unsigned i = 0; i < 3; i++) {
		cr_assert(eq(u32,
			     python_mix(&thread, allocate, &named, stack, 2,
					mixed, 4),
			     2));
		cr_expect(eq(u64, mixed[0], EVAL));
		cr_expect(eq(u64, mixed[1], 0x100));
		put_frame(0, 0, 0, true);
		unreadable = address(i ? CODE : FRAME) + 40;
	}
	cr_expect(zero(u32, named));
}
