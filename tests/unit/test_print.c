/*
 * Prints from handmade type trees, with values in simulated memory.
 */
#include "print/print.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static bool holds(bool condition)
{
	return condition;
}

/* --- a tree --- */

static struct {
	struct shim_typetree_node nodes[32];
	struct shim_typetree_part parts[300];
	char text[2048];
	uint32_t node_count, part_count, text_size;
} made;

static _Alignas(8) unsigned char packed[32768];

static uint32_t name(const char *text)
{
	uint32_t at;

	if (made.text_size == 0)
		made.text_size = 1;
	at = made.text_size;
	strcpy(made.text + at, text);
	made.text_size += (uint32_t)strlen(text) + 1;
	return at;
}

static struct shim_typetree_node *add_node(uint8_t kind, uint64_t size)
{
	struct shim_typetree_node *node = &made.nodes[made.node_count++];

	memset(node, 0, sizeof(*node));
	node->kind = kind;
	node->size = size;
	node->first = made.part_count;
	return node;
}

static uint32_t index_of(const struct shim_typetree_node *node)
{
	return (uint32_t)(node - made.nodes);
}

/* Adds a part; the parts of one node must be consecutive. */
static struct shim_typetree_part *add_part(struct shim_typetree_node *node,
					   int64_t value, const char *text)
{
	struct shim_typetree_part *part = &made.parts[made.part_count++];

	memset(part, 0, sizeof(*part));
	if (node->count++ == 0)
		node->first = (uint32_t)(part - made.parts);
	part->value = value;
	part->name = name(text);
	return part;
}

static struct shim_typetree_part *
add_field(struct shim_typetree_node *node, uint64_t offset, const char *text,
	  const struct shim_typetree_node *type)
{
	struct shim_typetree_part *part = add_part(node, (int64_t)offset, text);

	part->node = index_of(type);
	return part;
}

static const struct shim_typetree *pack(void)
{
	struct shim_typetree *tree = (struct shim_typetree *)packed;
	size_t nodes = made.node_count * sizeof(made.nodes[0]);
	size_t parts = made.part_count * sizeof(made.parts[0]);

	if (made.text_size == 0)
		made.text_size = 1;
	memset(packed, 0, sizeof(packed));
	tree->node_count = made.node_count;
	tree->part_count = made.part_count;
	tree->text_size = made.text_size;
	tree->size = (uint32_t)(sizeof(*tree) + nodes + parts + made.text_size +
				7) &
		     ~7u;
	memcpy(packed + sizeof(*tree), made.nodes, nodes);
	memcpy(packed + sizeof(*tree) + nodes, made.parts, parts);
	memcpy(packed + sizeof(*tree) + nodes + parts, made.text,
	       made.text_size);
	return tree;
}

static void forget(void)
{
	memset(&made, 0, sizeof(made));
}

/* --- simulated memory: @memory is at this address, with nothing around it
 * --- */

#define BASE 0x10000000u

static unsigned char memory[3 * 4096];
static size_t memory_size = sizeof(memory);
static unsigned reads, failing_read;

static int read_memory(void *unused, uintptr_t from, void *to, size_t size)
{
	(void)unused;
	cr_expect(holds(from / 4096 == (from + size - 1) / 4096),
		  "two pages at once");
	if (++reads == failing_read || from < BASE ||
	    from - BASE > memory_size || size > memory_size - (from - BASE))
		return -EFAULT;
	memcpy(to, memory + (from - BASE), size);
	return 0;
}

static bool name_memory(void *unused, uintptr_t address, char *text,
			size_t size, uint64_t *offset)
{
	(void)unused;
	if (address < 0x5000 || address >= 0x6000)
		return false;
	snprintf(text, size, "ma\x1bn");
	*offset = address - 0x5000;
	return true;
}

static struct print_space space;
static char text[70000];

static const char *print_flags(const void *value, uint32_t flags)
{
	struct print_job job = {
		.tree = pack(),
		.value = value,
		.flags = flags,
		.read = read_memory,
		.name = name_memory,
	};
	size_t size;

	cr_assert(holds(print_is_valid(job.tree, job.tree->size)));
	memset(&space, 0xa5, sizeof(space));
	job.space = print_needs_space(job.tree) ? &space : NULL;
	reads = 0;
	size = print_write(&job, text, sizeof(text));
	cr_assert(eq(sz, size, strlen(text) + 1));
	return text;
}

#define EXPECT(value, flags, want) \
	cr_expect(eq(str, (char *)print_flags(value, flags), (char *)(want)))

static const char *print_one(uint8_t kind, uint64_t size, uint8_t format,
			     const void *value, uint32_t flags)
{
	forget();
	add_node(kind, size)->format = format;
	return print_flags(value, flags);
}

/* --- numbers --- */

Test(print, integers_of_every_size)
{
	static const struct {
		uint8_t kind, size;
		uint64_t low, high;
		const char *plain, *json;
	} cases[] = {
		{ SHIM_TYPE_SIGNED, 1, 0x80, 0, "-128", "-128" },
		{ SHIM_TYPE_UNSIGNED, 1, 0xff, 0, "255", "255" },
		{ SHIM_TYPE_SIGNED, 2, 0xfffe, 0, "-2", "-2" },
		{ SHIM_TYPE_SIGNED, 4, 0x7fffffff, 0, "2147483647",
		  "2147483647" },
		{ SHIM_TYPE_SIGNED, 8, 1ull << 63, 0, "-9223372036854775808",
		  "-9223372036854775808" },
		{ SHIM_TYPE_UNSIGNED, 8, UINT64_MAX, 0, "18446744073709551615",
		  "18446744073709551615" },
		{ SHIM_TYPE_SIGNED, 16, 0, 1ull << 63,
		  "-170141183460469231731687303715884105728",
		  "-170141183460469231731687303715884105728" },
		{ SHIM_TYPE_UNSIGNED, 16, UINT64_MAX, UINT64_MAX,
		  "340282366920938463463374607431768211455",
		  "340282366920938463463374607431768211455" },
		{ SHIM_TYPE_UNSIGNED, 16, 0, 1, "18446744073709551616",
		  "18446744073709551616" },
		{ SHIM_TYPE_SIGNED, 16, UINT64_MAX, UINT64_MAX, "-1", "-1" },
		{ SHIM_TYPE_BOOL, 1, 0, 0, "false", "false" },
		{ SHIM_TYPE_BOOL, 1, 1, 0, "true", "true" },
		{ SHIM_TYPE_BOOL, 1, 7, 0, "7", "7" },
		{ SHIM_TYPE_CHARACTER, 1, 'a', 0, "'a'", "\"a\"" },
		{ SHIM_TYPE_CHARACTER, 1, '\'', 0, "'\\''", "\"'\"" },
		{ SHIM_TYPE_CHARACTER, 1, '"', 0, "'\"'", "\"\\\"\"" },
		{ SHIM_TYPE_CHARACTER, 1, 0, 0, "'\\x00'", "\"\\u0000\"" },
		{ SHIM_TYPE_CHARACTER, 1, '\n', 0, "'\\n'", "\"\\n\"" },
		{ SHIM_TYPE_CHARACTER, 1, 0xe9, 0, "'\\xe9'", "\"\\\\xe9\"" },
		{ SHIM_TYPE_CHARACTER, 2, 0xe9, 0, "'\xc3\xa9'",
		  "\"\xc3\xa9\"" },
		{ SHIM_TYPE_CHARACTER, 4, 0x1f41f, 0, "'\xf0\x9f\x90\x9f'",
		  "\"\xf0\x9f\x90\x9f\"" },
		{ SHIM_TYPE_CHARACTER, 4, 0x202e, 0, "'\\xe2\\x80\\xae'",
		  "\"\\u202e\"" },
		{ SHIM_TYPE_CHARACTER, 4, 0xd800, 0, "55296", "55296" },
		{ SHIM_TYPE_CHARACTER, 4, 0xffffffff, 0, "4294967295",
		  "4294967295" },
		{ SHIM_TYPE_VOID, 0, 0, 0, "void", "null" },
		{ SHIM_TYPE_UNKNOWN, 4, 0, 0, "(unknown)", "\"(unknown)\"" },
		{ SHIM_TYPE_MEMBER_POINTER, 8, 16, 0, "16", "16" },
		{ SHIM_TYPE_MEMBER_POINTER, 8, UINT64_MAX, 0, "NULL", "null" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t value[2] = { cases[i].low, cases[i].high };

		cr_expect(eq(str,
			     (char *)print_one(cases[i].kind, cases[i].size, 0,
					       value, 0),
			     (char *)cases[i].plain));
		cr_expect(eq(str,
			     (char *)print_one(cases[i].kind, cases[i].size, 0,
					       value, SHIM_PRINT_JSON),
			     (char *)cases[i].json));
	}
}

static const char *print_double(double value)
{
	return print_one(SHIM_TYPE_FLOAT, 8, SHIM_TYPETREE_BINARY64, &value, 0);
}

static const char *print_float(float value)
{
	return print_one(SHIM_TYPE_FLOAT, 4, SHIM_TYPETREE_BINARY32, &value, 0);
}

Test(print, floating_point_as_people_write_it)
{
	static const struct {
		double value;
		const char *want;
	} cases[] = {
		{ 0.0, "0" },
		{ -0.0, "-0" },
		{ 1, "1" },
		{ -1.5, "-1.5" },
		{ 0.1, "0.1" },
		{ 10, "10" },
		{ 100.25, "100.25" },
		{ 0.0001, "0.0001" },
		{ 0.00001, "1e-05" },
		{ 9.5, "9.5" },
		{ 1e15, "1000000000000000" },
		{ 1e16, "1e+16" },
		{ 1e22, "1e+22" },
		{ 1e23, "1e+23" },
		{ 5e-324, "5e-324" },
		{ 2.2250738585072014e-308, "2.2250738585072014e-308" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" },
		{ 9007199254740993.0, "9007199254740992" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ INFINITY, "inf" },
		{ -INFINITY, "-inf" },
		{ NAN, "nan" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cr_expect(eq(str, (char *)print_double(cases[i].value),
			     (char *)cases[i].want));
	cr_expect(eq(str, (char *)print_float(0.1f), (char *)"0.1"));
	cr_expect(eq(str, (char *)print_float(3.4028235e38f),
		     (char *)"3.4028235e+38"));
	cr_expect(eq(str, (char *)print_float(1e-45f), (char *)"1e-45"));
	cr_expect(
		eq(str, (char *)print_float(16777216.0f), (char *)"16777216"));
}

static uint64_t state = 88172645463325252ull;

static uint64_t random_bits(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* The fewest digits, found by trying the nearest number; one with fewer digits
 * may exist that is not nearest. */
static int digits_needed(double value)
{
	char tried[64];

	for (int digits = 1; digits < 17; digits++) {
		snprintf(tried, sizeof(tried), "%.*e", digits - 1, value);
		if (strtod(tried, NULL) == value)
			return digits;
	}
	return 17;
}

static int digits_of(const char *number)
{
	int digits = 0, zeros = 0;

	for (; *number && *number != 'e'; number++) {
		if (*number < '0' || *number > '9')
			continue;
		zeros = *number == '0' ? zeros + 1 : 0;
		digits += digits > 0 || *number != '0';
	}
	return digits - (zeros < digits ? zeros : 0);
}

Test(print, a_number_is_read_back_as_itself_and_none_is_shorter)
{
	for (int i = 0; i < 20000; i++) {
		uint64_t bits = random_bits();
		double value;
		const char *got;

		/* In one of 16 cases the mantissa is a power of two. */
		if (i % 16 == 0)
			bits &= ~0ull << 52;
		memcpy(&value, &bits, sizeof(value));
		if (!isfinite(value))
			continue;
		got = print_double(value);
		cr_assert(holds(strtod(got, NULL) == value), "%s %a", got,
			  value);
		cr_assert(holds(value == 0 ||
				digits_of(got) <= digits_needed(value)),
			  "%s %a", got, value);
	}
}

#if __LDBL_MANT_DIG__ == 64
Test(print, so_is_a_long_double)
{
	static const long double cases[] = {
		0.1L,
		1e4932L,
		3.6e-4951L,
		1.18973149535723176502e4932L,
		3.14159265358979323846L,
		-1,
		1e-4000L,
		12345678901234567890.0L,
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned char bytes[16];
		const char *got;

		memset(bytes, 0xa5, sizeof(bytes));
		memcpy(bytes, &cases[i], 10);
		got = print_one(SHIM_TYPE_FLOAT, 16, SHIM_TYPETREE_X87, bytes,
				0);
		cr_expect(holds(strtold(got, NULL) == cases[i]), "%s", got);
	}
	for (int i = 0; i < 3000; i++) {
		struct {
			uint64_t mantissa;
			uint16_t exponent;
		} bits = { random_bits() | 1ull << 63,
			   (uint16_t)(random_bits() % 0x7fff) };
		unsigned char bytes[16] = { 0 };
		long double value;
		const char *got;

		bits.exponent += bits.exponent == 0;
		memcpy(bytes, &bits, 10);
		memcpy(&value, bytes, sizeof(value));
		got = print_one(SHIM_TYPE_FLOAT, 16, SHIM_TYPETREE_X87, bytes,
				0);
		cr_assert(holds(strtold(got, NULL) == value), "%s %La", got,
			  value);
	}
}

Test(print, what_the_processor_takes_for_no_number_is_none)
{
	unsigned char unnormal[16] = { [7] = 0x40, [8] = 0x00, [9] = 0x40 };
	unsigned char infinite[16] = { [7] = 0x80, [8] = 0xff, [9] = 0xff };

	cr_expect(eq(str,
		     (char *)print_one(SHIM_TYPE_FLOAT, 16, SHIM_TYPETREE_X87,
				       unnormal, 0),
		     (char *)"nan"));
	cr_expect(eq(str,
		     (char *)print_one(SHIM_TYPE_FLOAT, 16, SHIM_TYPETREE_X87,
				       infinite, 0),
		     (char *)"-inf"));
}
#endif

Test(print, halves_and_quadruples)
{
	uint16_t one_third = 0x3555, largest = 0x7bff;
	/* 1 + 2^-112 */
	uint64_t quad[2] = { 1, 0x3fffull << 48 };

	cr_expect(eq(str,
		     (char *)print_one(SHIM_TYPE_FLOAT, 2,
				       SHIM_TYPETREE_BINARY16, &one_third, 0),
		     (char *)"0.3333"));
	cr_expect(eq(str,
		     (char *)print_one(SHIM_TYPE_FLOAT, 2,
				       SHIM_TYPETREE_BINARY16, &largest, 0),
		     (char *)"65500"));
	cr_expect(eq(str,
		     (char *)print_one(SHIM_TYPE_FLOAT, 16,
				       SHIM_TYPETREE_BINARY128, quad, 0),
		     (char *)"1.0000000000000000000000000000000002"));
}

Test(print, complex_numbers)
{
	double value[2] = { 1.5, -2 }, odd[2] = { NAN, INFINITY };

	cr_expect(eq(str,
		     (char *)print_one(SHIM_TYPE_COMPLEX, 16,
				       SHIM_TYPETREE_BINARY64, value, 0),
		     (char *)"1.5 - 2i"));
	cr_expect(eq(str,
		     (char *)print_one(SHIM_TYPE_COMPLEX, 16,
				       SHIM_TYPETREE_BINARY64, value,
				       SHIM_PRINT_JSON),
		     (char *)"{\"real\": 1.5, \"imaginary\": -2}"));
	cr_expect(eq(str,
		     (char *)print_one(SHIM_TYPE_COMPLEX, 16,
				       SHIM_TYPETREE_BINARY64, odd,
				       SHIM_PRINT_JSON),
		     (char *)"{\"real\": \"nan\", \"imaginary\": \"inf\"}"));
}

/* --- enumerators --- */

static void make_enumeration(bool is_flags)
{
	struct shim_typetree_node *node = add_node(SHIM_TYPE_ENUM, 4);

	node->name = name("enum colour");
	node->is_signed = !is_flags;
	node->is_flags = is_flags;
	add_part(node, 1, "RED");
	add_part(node, 2, "GREEN");
	add_part(node, 8, "BLUE");
	add_part(node, 3, "YELLOW");
}

Test(print, enumerators_by_name)
{
	int red = 1, none = 0, both = 9, yellow = 3, other = 16, negative = -1;

	make_enumeration(false);
	EXPECT(&red, 0, "RED");
	EXPECT(&red, SHIM_PRINT_JSON, "\"RED\"");
	EXPECT(&both, 0, "(enum colour) 9");
	EXPECT(&negative, 0, "(enum colour) -1");
	EXPECT(&negative, SHIM_PRINT_JSON, "-1");
	forget();
	make_enumeration(true);
	EXPECT(&both, 0, "RED|BLUE");
	EXPECT(&both, SHIM_PRINT_JSON, "\"RED|BLUE\"");
	EXPECT(&yellow, 0, "YELLOW");
	EXPECT(&none, 0, "(enum colour) 0");
	EXPECT(&other, 0, "(enum colour) 16");
	EXPECT(&negative, 0, "(enum colour) 4294967295");
}

/* --- pointers and strings --- */

static void make_pointer(uint8_t kind, uint64_t size)
{
	struct shim_typetree_node *node;

	forget();
	node = add_node(SHIM_TYPE_POINTER, 8);
	if (kind != SHIM_TYPE_VOID)
		node->inner = index_of(add_node(kind, size));
}

Test(print, pointers_with_what_they_point_into)
{
	uintptr_t null = 0, here = 0x5000, behind = 0x5004, far = 0x77;

	make_pointer(SHIM_TYPE_VOID, 0);
	EXPECT(&null, 0, "NULL");
	EXPECT(&null, SHIM_PRINT_JSON, "null");
	EXPECT(&here, 0, "0x5000 <ma\\x1bn>");
	EXPECT(&here, SHIM_PRINT_JSON, "\"0x5000 <ma\\u001bn>\"");
	EXPECT(&behind, 0, "0x5004 <ma\\x1bn+4>");
	EXPECT(&behind, SHIM_PRINT_PLAIN, "0x5004");
	EXPECT(&far, 0, "0x77");
}

Test(print, strings_are_escaped_for_terminals_and_for_json)
{
	uintptr_t at = BASE, bad = 0x10;

	make_pointer(SHIM_TYPE_CHARACTER, 1);
	strcpy((char *)memory, "a\"\\\n\x1b[31m\x7f\xff\xc3\xa4\xc2\x85\xe2\x80"
			       "\xae\xc3(\xed\xa0\x80");
	EXPECT(&at, 0,
	       "\"a\\\"\\\\\\n\\x1b[31m\\x7f\\xff\xc3\xa4\\xc2\\x85\\xe2\\x80\\xae"
	       "\\xc3(\\xed\\xa0\\x80\"");
	EXPECT(&at, SHIM_PRINT_JSON,
	       "\"a\\\"\\\\\\n\\u001b[31m\\u007f\\\\xff\xc3\xa4\\u0085\\u202e\\\\xc3"
	       "(\\\\xed\\\\xa0\\\\x80\"");
	memory[0] = '\0';
	EXPECT(&at, 0, "\"\"");
	EXPECT(&bad, 0, "0x10 (unreadable)");
	EXPECT(&bad, SHIM_PRINT_JSON, "{\"unreadable\": \"0x10\"}");
	EXPECT(&at, SHIM_PRINT_PLAIN, "0x10000000");
}

Test(print, long_strings_are_cut_between_characters)
{
	uintptr_t at = BASE;
	char want[1100];

	make_pointer(SHIM_TYPE_CHARACTER, 1);
	memset(memory, 'x', 64);
	memory[64] = '\0';
	snprintf(want, sizeof(want), "\"%.64s\"", memory);
	EXPECT(&at, 0, want);
	memcpy(memory + 63, "\xc3\xa4", 3);
	snprintf(want, sizeof(want), "\"%.63s\"...", memory);
	EXPECT(&at, 0, want);
	snprintf(want, sizeof(want), "{\"cut\": \"%.63s\"}", memory);
	EXPECT(&at, SHIM_PRINT_JSON, want);
	snprintf(want, sizeof(want), "\"%.66s\"", memory);
	EXPECT(&at, SHIM_PRINT_LONG, want);
	memset(memory, 'x', 2000);
	snprintf(want, sizeof(want), "\"%.1024s\"...", memory);
	EXPECT(&at, SHIM_PRINT_LONG, want);
}

Test(print, a_string_may_end_where_memory_does)
{
	uintptr_t at = BASE + 3 * 4096 - 4, across = BASE + 4094;
	uintptr_t last = UINTPTR_MAX;

	make_pointer(SHIM_TYPE_CHARACTER, 1);
	memcpy(memory + sizeof(memory) - 4, "abc", 4);
	EXPECT(&at, 0, "\"abc\"");
	memcpy(memory + sizeof(memory) - 4, "abcd", 4);
	EXPECT(&at, 0, "\"abcd\"...");
	strcpy((char *)memory + 4094, "page");
	EXPECT(&across, 0, "\"page\"");
	EXPECT(&last, 0, "0xffffffffffffffff (unreadable)");
}

Test(print, references_show_what_they_refer_to)
{
	uintptr_t at = BASE + 4094, null = 0, bad = 0x20;
	int value = -7;

	forget();
	add_node(SHIM_TYPE_REFERENCE, 8)->inner = 1;
	add_node(SHIM_TYPE_SIGNED, 4);
	memcpy(memory + 4094, &value, 4);
	EXPECT(&at, 0, "-7");
	EXPECT(&at, SHIM_PRINT_PLAIN, "0x10000ffe");
	EXPECT(&null, 0, "NULL");
	EXPECT(&bad, 0, "0x20 (unreadable)");
}

/* --- classes and lists --- */

static void make_class(void)
{
	struct shim_typetree_node *class = add_node(SHIM_TYPE_STRUCT, 32);
	struct shim_typetree_node *number = add_node(SHIM_TYPE_SIGNED, 4);
	struct shim_typetree_node *bits = add_node(SHIM_TYPE_UNSIGNED, 4);
	struct shim_typetree_node *inner = add_node(SHIM_TYPE_STRUCT, 8);
	struct shim_typetree_node *string = add_node(SHIM_TYPE_POINTER, 8);
	struct shim_typetree_part *field;

	inner->is_cut = true;
	string->inner = index_of(add_node(SHIM_TYPE_CHARACTER, 1));
	add_field(class, 0, "a", number);
	field = add_field(class, 4, "b", bits);
	field->bit = 3;
	field->bits = 5;
	field = add_field(class, 5, "c", number);
	field->bits = 2;
	add_field(class, 8, "d", inner);
	add_field(class, 16, "e", string);
}

Test(print, classes_one_level_deep_and_bit_fields)
{
	struct {
		int a;
		unsigned char b, c;
		char d[8];
		uintptr_t e;
	} value = { -1, 0xff, 0xfe, { 0 }, BASE };

	make_class();
	strcpy((char *)memory, "hi");
	EXPECT(&value, 0, "{a = -1, b = 31, c = -2, d = {...}, e = \"hi\"}");
	EXPECT(&value, SHIM_PRINT_JSON,
	       "{\"a\": -1, \"b\": 31, \"c\": -2, \"d\": \"{...}\", \"e\": \"hi\"}");
	forget();
	add_node(SHIM_TYPE_STRUCT, 1);
	EXPECT(&value, 0, "{}");
	EXPECT(&value, SHIM_PRINT_JSON, "{}");
}

Test(print, a_bit_field_may_span_nine_bytes)
{
	unsigned char bytes[9] = { 0x80, 1, 2, 3, 4, 5, 6, 7, 0x7f };
	struct shim_typetree_node *class = add_node(SHIM_TYPE_STRUCT, 16);
	struct shim_typetree_part *field = add_field(
		class, 0, "a", add_node(SHIM_TYPE_UNSIGNED, 8));

	field->bit = 7;
	field->bits = 64;
	/* 0x7f << 57 | 0x0706050403020180 >> 7 */
	EXPECT(bytes, 0, "{a = 18306582772531463171}");
}

static struct shim_typetree_node *make_array(uint8_t kind, uint64_t elements,
					     uint8_t element, uint64_t size)
{
	struct shim_typetree_node *node;

	forget();
	node = add_node(kind, elements * size);
	node->elements = elements;
	node->inner = index_of(add_node(element, size));
	return node;
}

Test(print, arrays_are_cut)
{
	unsigned char bytes[300];

	for (int i = 0; i < 300; i++)
		bytes[i] = (unsigned char)(i % 10);
	make_array(SHIM_TYPE_ARRAY, 3, SHIM_TYPE_UNSIGNED, 1);
	EXPECT(bytes, 0, "[0, 1, 2]");
	make_array(SHIM_TYPE_VECTOR, 2, SHIM_TYPE_UNSIGNED, 1);
	EXPECT(bytes, SHIM_PRINT_JSON, "[0, 1]");
	make_array(SHIM_TYPE_ARRAY, 17, SHIM_TYPE_UNSIGNED, 1);
	EXPECT(bytes, 0,
	       "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, ...]");
	EXPECT(bytes, SHIM_PRINT_JSON,
	       "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, \"...\"]");
	EXPECT(bytes, SHIM_PRINT_LONG,
	       "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6]");
	make_array(SHIM_TYPE_ARRAY, 257, SHIM_TYPE_UNSIGNED, 1);
	cr_expect(holds(strstr(print_flags(bytes, SHIM_PRINT_LONG), ", ...]") !=
			NULL));
	make_array(SHIM_TYPE_ARRAY, 0, SHIM_TYPE_UNSIGNED, 1);
	EXPECT(bytes, 0, "[]");
	make_array(SHIM_TYPE_ARRAY, 1, SHIM_TYPE_UNSIGNED, 1)->elements =
		UINT64_MAX;
	EXPECT(bytes, 0, "[...]");
}

Test(print, an_array_of_characters_is_a_string)
{
	make_array(SHIM_TYPE_ARRAY, 4, SHIM_TYPE_CHARACTER, 1);
	EXPECT("ab\0c", 0, "\"ab\"");
	EXPECT("abcdef", 0, "\"abcd\"");
	make_array(SHIM_TYPE_ARRAY, 100, SHIM_TYPE_CHARACTER, 1);
	memset(memory, 'x', 200);
	cr_expect(holds(strstr(print_flags(memory, 0), "x\"...") != NULL));
}

/* --- types of the C++ library --- */

static struct shim_typetree_node *make_form(uint8_t form, uint64_t second,
					    uint8_t flags)
{
	struct shim_typetree_node *class, *pointer, *number;

	forget();
	class = add_node(SHIM_TYPE_STRUCT, 32);
	pointer = add_node(SHIM_TYPE_POINTER, 8);
	number = form == SHIM_TYPETREE_SEQUENCE ?
			 pointer :
			 add_node(SHIM_TYPE_UNSIGNED, 8);
	class->form = form;
	add_field(class, 8, "first", pointer);
	add_field(class, second, "second", number)->flags = flags;
	return class;
}

Test(print, strings_of_the_library)
{
	uint64_t value[4] = { 0, BASE + 24, 3 }, length = 2;

	memcpy(memory + 24, "a\0b", 4);
	make_form(SHIM_TYPETREE_TEXT, 16, 0);
	EXPECT(value, 0, "\"a\\x00b\"");
	EXPECT(value, SHIM_PRINT_JSON, "\"a\\u0000b\"");
	EXPECT(value, SHIM_PRINT_PLAIN, "{...}");
	value[2] = UINT64_MAX;
	cr_expect(holds(strstr(print_flags(value, 0), "\"...") != NULL));
	value[2] = 0;
	EXPECT(value, 0, "\"\"");
	value[2] = 5;
	value[1] = 0x10;
	EXPECT(value, 0, "0x10 (unreadable)");
	/* The older layout: the length is before the characters. */
	value[1] = BASE + 24;
	memcpy(memory, &length, 8);
	make_form(SHIM_TYPETREE_TEXT, (uint64_t)-24, SHIM_TYPETREE_INDIRECT);
	EXPECT(value, 0, "\"a\\x00\"");
	value[1] = BASE + 8;
	EXPECT(value, 0, "0xffffff0 (unreadable)");
}

Test(print, strings_that_may_be_in_their_object)
{
	unsigned char value[24] = { 2 << 1, 'a', '\0', 'c' };
	struct shim_typetree_node *class, *pointer, *number, *byte;
	uint64_t length = 2, address = BASE + 24;

	forget();
	class = add_node(SHIM_TYPE_STRUCT, 24);
	pointer = add_node(SHIM_TYPE_POINTER, 8);
	number = add_node(SHIM_TYPE_UNSIGNED, 8);
	byte = add_node(SHIM_TYPE_UNSIGNED, 1);
	class->form = SHIM_TYPETREE_SHORT_TEXT;
	add_field(class, 16, "data", pointer);
	add_field(class, 8, "size", number);
	add_field(class, 0, "size", byte);
	add_field(class, 1, "data", byte);
	EXPECT(value, 0, "\"a\\x00\"");
	EXPECT(value, SHIM_PRINT_PLAIN, "{...}");
	value[0] = 0;
	EXPECT(value, 0, "\"\"");
	/* The object is not constructed yet. */
	memset(value, 'x', sizeof(value));
	value[0] = 0xfe;
	EXPECT(value, 0, "\"xxxxxxxxxxxxxxxxxxxxxxx\"");
	memcpy(memory + 24, "long", 4);
	value[0] = 0x31;
	memcpy(value + 8, &length, 8);
	memcpy(value + 16, &address, 8);
	EXPECT(value, 0, "\"lo\"");
	EXPECT(value, SHIM_PRINT_JSON, "\"lo\"");
}

Test(print, vectors_of_the_library)
{
	uint64_t value[4] = { 0, BASE, BASE + 12 };
	int numbers[20] = { 1, 2, -3 };
	struct shim_typetree_node *class;

	memcpy(memory, numbers, sizeof(numbers));
	class = make_form(SHIM_TYPETREE_SEQUENCE, 16, 0);
	class->inner = index_of(add_node(SHIM_TYPE_SIGNED, 4));
	EXPECT(value, 0, "{size 3: 1, 2, -3}");
	EXPECT(value, SHIM_PRINT_JSON,
	       "{\"size\": 3, \"elements\": [1, 2, -3]}");
	cr_expect(eq(u32, reads, 1));
	value[2] = BASE + 80;
	EXPECT(value, 0,
	       "{size 20: 1, 2, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...}");
	value[2] = BASE;
	EXPECT(value, 0, "{size 0}");
	EXPECT(value, SHIM_PRINT_JSON, "{\"size\": 0, \"elements\": []}");
	value[2] = BASE - 4;
	EXPECT(value, 0, "{...}");
	value[2] = BASE + 3;
	EXPECT(value, 0, "{...}");
	value[1] = 0x10;
	value[2] = 0x18;
	EXPECT(value, 0, "{size 2: 0x10 (unreadable), 0x14 (unreadable)}");
}

Test(print, wrappers_and_optionals)
{
	uint64_t value[4] = { 0, 0x77, 1 };

	make_form(SHIM_TYPETREE_OPTIONAL, 16, 0);
	EXPECT(value, 0, "0x77");
	value[2] = 0;
	EXPECT(value, 0, "nullopt");
	EXPECT(value, SHIM_PRINT_JSON, "null");
	make_form(SHIM_TYPETREE_WRAPPER, 16, 0);
	EXPECT(value, 0, "0x77");
}

/* --- reasons --- */

Test(print, every_reason_has_its_words)
{
	for (int i = SHIM_AVAILABLE; i <= SHIM_UNAVAILABLE_NOT_YET; i++)
		cr_expect(holds(shim_unavailable_text(i) != NULL), "%d", i);
	cr_expect(holds(!shim_unavailable_text(SHIM_UNAVAILABLE_NOT_YET + 1)));
	cr_expect(holds(!shim_unavailable_text(-1)));
}

/* --- bounds --- */

/* A valid class with one member of each kind. */
static void make_all(void)
{
	struct shim_typetree_node *reference, *class, *types[8];

	forget();
	reference = add_node(SHIM_TYPE_REFERENCE, 8);
	class = add_node(SHIM_TYPE_STRUCT, 8192);
	reference->inner = index_of(class);
	types[0] = add_node(SHIM_TYPE_SIGNED, 4);
	types[1] = add_node(SHIM_TYPE_FLOAT, 8);
	types[1]->format = SHIM_TYPETREE_BINARY64;
	types[2] = add_node(SHIM_TYPE_POINTER, 8);
	types[3] = add_node(SHIM_TYPE_CHARACTER, 1);
	types[2]->inner = index_of(types[3]);
	types[4] = add_node(SHIM_TYPE_ARRAY, 4096);
	types[4]->elements = 2;
	types[5] = add_node(SHIM_TYPE_COMPLEX, 16);
	types[5]->format = SHIM_TYPETREE_BINARY64;
	types[4]->inner = index_of(types[5]);
	types[6] = add_node(SHIM_TYPE_ENUM, 4);
	add_field(class, 0, "a\xc3\xa4", types[0]);
	add_field(class, 4092, "b", types[1]);
	add_field(class, 4200, "c", types[2]);
	add_field(class, 5000, "d", types[4]);
	add_field(class, 8000, "e", types[6]);
}

static uintptr_t prepare_all(void)
{
	uintptr_t string = BASE + 8300;

	make_all();
	memset(memory, 0, sizeof(memory));
	memcpy(memory + 4200, &string, 8);
	strcpy((char *)memory + 8300, "text k\xc3\xa4se");
	return BASE;
}

Test(print, a_short_buffer_gets_the_beginning)
{
	uintptr_t at = prepare_all();
	struct print_job job = { .tree = pack(),
				 .value = &at,
				 .read = read_memory,
				 .space = &space };
	char whole[512], some[512];
	size_t size = print_write(&job, whole, sizeof(whole));

	cr_assert(eq(str, whole,
		     "{a\xc3\xa4 = 0, b = 0, c = \"text k\xc3\xa4se\", "
		     "d = [0 + 0i, 0 + 0i], e = () 0}"));
	for (size_t i = 0; i <= size; i++) {
		size_t cut = i ? i - 1 : 0;

		memset(some, 0xa5, sizeof(some));
		cr_expect(eq(sz, print_write(&job, some, i), size));
		cr_expect(holds((unsigned char)some[i] == 0xa5));
		if (i == 0)
			continue;
		while (cut > 0 && ((unsigned char)whole[cut] & 0xc0) == 0x80)
			cut--;
		cr_expect(eq(sz, strlen(some), cut), "%zu", i);
		cr_expect(holds(memcmp(some, whole, cut) == 0), "%zu", i);
	}
}

Test(print, whichever_read_fails_the_rest_is_printed)
{
	uintptr_t at = prepare_all();
	unsigned n = 1;

	do {
		failing_read = n;
		print_flags(&at, 0);
		cr_expect(holds(reads < n || strstr(text, "(unreadable)")),
			  "%u: %s", n, text);
		cr_expect(holds(n == 1 || text[strlen(text) - 1] == '}'), "%s",
			  text);
	} while (reads >= n++);
	cr_expect(holds(n > 5));
	failing_read = 0;
}

Test(print, without_a_way_to_read_all_pointers_are_unreadable)
{
	uintptr_t at = prepare_all();
	struct print_job job = { .tree = pack(),
				 .value = &at,
				 .space = &space };

	print_write(&job, text, sizeof(text));
	cr_expect(eq(str, text, (char *)"0x10000000 (unreadable)"));
}

Test(print, the_text_of_anything_is_bounded)
{
	struct shim_typetree_node *node;

	/* Arrays of arrays of arrays ... */
	for (int i = 0; i < 14; i++) {
		node = add_node(SHIM_TYPE_ARRAY, 0);
		node->elements = 1000;
		node->inner = (uint32_t)(i + 1);
	}
	add_node(SHIM_TYPE_SIGNED, 4);
	print_flags(memory, 0);
	cr_expect(holds(strlen(text) < 5000), "%zu", strlen(text));
	print_flags(memory, SHIM_PRINT_LONG);
	cr_expect(holds(strlen(text) < 68000), "%zu", strlen(text));
	forget();
	/* ... and deeper than the printer goes. */
	for (int i = 0; i < 30; i++) {
		node = add_node(SHIM_TYPE_ARRAY, 0);
		node->elements = 1;
		node->inner = (uint32_t)(i + 1);
	}
	add_node(SHIM_TYPE_SIGNED, 4);
	EXPECT(memory, 0, "[[[[[[[[{...}]]]]]]]]");
}

/* A tree with any change is refused, or printed in some way. */
Test(print, a_damaged_tree_harms_nobody)
{
	static _Alignas(8) unsigned char copy[sizeof(packed)];
	uintptr_t at[8192 / 8] = { BASE };
	unsigned refused = 0, printed = 0;
	const struct shim_typetree *tree;
	struct print_job job = { .value = at,
				 .read = read_memory,
				 .space = &space };
	uint32_t size;

	prepare_all();
	tree = pack();
	size = tree->size;
	memcpy(copy, packed, size);
	for (int i = 0; i < 50000; i++) {
		for (uint64_t n = random_bits() % 3 + 1; n > 0; n--)
			copy[random_bits() % size] =
				random_bits() % 2 ?
					(unsigned char)random_bits() :
					(unsigned char)(random_bits() % 20);
		job.tree = (const struct shim_typetree *)copy;
		job.flags = random_bits() % 8;
		/* Its raw bytes have the size of the type: the type may not be
		 * larger. */
		if (!print_is_valid(job.tree, size)) {
			refused++;
		} else if (shim_typetree_nodes(job.tree)->kind ==
			   SHIM_TYPE_REFERENCE) {
			printed++;
			print_write(&job, text, sizeof(text));
			cr_assert(holds(strlen(text) < sizeof(text) - 1));
		}
		memcpy(copy, packed, size);
	}
	cr_expect(holds(refused > 1000 && printed > 1000), "%u %u", refused,
		  printed);
	cr_expect(holds(!print_is_valid(tree, size - 8)));
	cr_expect(holds(!print_is_valid(tree, 0)));
}

/* A tree of this many nodes, parts, and bytes of text, all of which are empty. */
static bool is_size_valid(uint32_t nodes, uint32_t parts, uint32_t text_size)
{
	size_t size = sizeof(struct shim_typetree) +
		      (nodes + 1) * sizeof(struct shim_typetree_node) +
		      (parts + 1) * sizeof(struct shim_typetree_part) +
		      text_size + 8;
	struct shim_typetree *tree = calloc(1, size);
	bool is_valid;

	tree->size = (uint32_t)(size / 8 * 8);
	tree->node_count = nodes;
	tree->part_count = parts;
	tree->text_size = text_size;
	for (uint32_t i = 0; i < nodes; i++)
		((struct shim_typetree_node *)shim_typetree_nodes(tree))[i]
			.kind = SHIM_TYPE_UNKNOWN;
	is_valid = print_is_valid(tree, size);
	free(tree);
	return is_valid;
}

Test(print, a_tree_has_at_most_the_sizes_of_its_header)
{
	cr_expect(holds(is_size_valid(1, 0, 1)));
	cr_expect(holds(!is_size_valid(0, 0, 1)));
	cr_expect(holds(!is_size_valid(1, 0, 0)));
	cr_expect(holds(is_size_valid(SHIM_TYPETREE_NODES_MAX, 0, 1)));
	cr_expect(holds(!is_size_valid(SHIM_TYPETREE_NODES_MAX + 1, 0, 1)));
	cr_expect(holds(is_size_valid(1, SHIM_TYPETREE_PARTS_MAX, 1)));
	cr_expect(holds(!is_size_valid(1, SHIM_TYPETREE_PARTS_MAX + 1, 1)));
	cr_expect(holds(is_size_valid(1, 0, SHIM_TYPETREE_TEXT_MAX)));
	cr_expect(holds(!is_size_valid(1, 0, SHIM_TYPETREE_TEXT_MAX + 1)));
}

/* --- plain values, which consist of their bytes --- */

static bool is_plain(void)
{
	const struct shim_typetree *tree = pack();
	bool plain = shim_typetree_is_plain(tree);

	cr_assert(holds(print_is_valid(tree, tree->size)), "kind %u",
		  shim_typetree_nodes(tree)->kind);
	forget();
	return plain;
}

static struct shim_typetree_node *make_plain_class(void)
{
	struct shim_typetree_node *class = add_node(SHIM_TYPE_STRUCT, 24);
	struct shim_typetree_node *number = add_node(SHIM_TYPE_SIGNED, 4);
	struct shim_typetree_node *list = add_node(SHIM_TYPE_ARRAY, 12);
	struct shim_typetree_node *real = add_node(SHIM_TYPE_FLOAT, 8);
	struct shim_typetree_part *field;

	list->elements = 3;
	list->inner = index_of(add_node(SHIM_TYPE_CHARACTER, 4));
	real->format = SHIM_TYPETREE_BINARY64;
	add_field(class, 0, "a", real);
	add_field(class, 8, "b", list);
	field = add_field(class, 20, "c", number);
	field->bit = 3;
	field->bits = 17;
	return class;
}

Test(print, numbers_and_what_is_made_of_them_are_plain)
{
	add_node(SHIM_TYPE_SIGNED, 16);
	cr_expect(holds(is_plain()));
	add_node(SHIM_TYPE_MEMBER_POINTER, 8);
	cr_expect(holds(is_plain()));
	make_plain_class();
	cr_expect(holds(is_plain()));
	make_plain_class()->form = SHIM_TYPETREE_WRAPPER;
	cr_expect(holds(is_plain()));
}

Test(print, what_an_address_is_part_of_is_not_plain)
{
	static const uint8_t kinds[] = { SHIM_TYPE_POINTER, SHIM_TYPE_REFERENCE,
					 SHIM_TYPE_FUNCTION,
					 SHIM_TYPE_UNKNOWN };
	struct shim_typetree_node *class;

	for (unsigned i = 0; i < sizeof(kinds); i++) {
		class = make_plain_class();
		add_field(class, 0, "d", add_node(kinds[i], 8));
		cr_expect(holds(!is_plain()), "kind %u", kinds[i]);
	}
	add_node(SHIM_TYPE_MEMBER_POINTER, 16);
	cr_expect(holds(!is_plain()));
	make_class();
	cr_expect(holds(!is_plain()));
	class = make_form(SHIM_TYPETREE_SEQUENCE, 16, 0);
	class->inner = index_of(add_node(SHIM_TYPE_SIGNED, 4));
	cr_expect(holds(!is_plain()));
}

/* A valid tree whose value has fewer bytes than the tree needs. */
Test(print, of_a_damaged_plain_tree_nothing_but_its_value_is_read)
{
	static _Alignas(8) unsigned char copy[sizeof(packed)];
	unsigned char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct print_job job = { .tree = (const struct shim_typetree *)copy,
				 .space = &space };
	unsigned plain = 0, other = 0;
	uint32_t size;

	cr_assert(holds(mprotect(pages + 4096, 4096, PROT_NONE) == 0));
	memset(pages, 0x81, 4096);
	make_plain_class();
	size = pack()->size;
	for (int i = 0; i < 50000; i++) {
		const struct shim_typetree_node *node = shim_typetree_nodes(
			job.tree);

		memcpy(copy, packed, size);
		for (uint64_t n = random_bits() % 3 + 1; n > 0; n--)
			copy[16 + random_bits() % (size - 16)] =
				(unsigned char)(random_bits() % 40);
		if (!print_is_valid(job.tree, size))
			continue;
		other += !shim_typetree_is_plain(job.tree);
		if (!shim_typetree_is_plain(job.tree) || node->size > 4096)
			continue;
		plain++;
		job.value = pages + 4096 - node->size;
		print_write(&job, text, sizeof(text));
		cr_assert(holds(strlen(text) < sizeof(text) - 1));
	}
	cr_expect(holds(plain > 1000 && other > 1000), "%u %u", plain, other);
}
