/* Values of C: see values.h. */
#include "values.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum colour { RED, GREEN, BLUE };
enum access { NONE, READ = 1, WRITE = 2, EXECUTE = 4, ALL = 7, LAST = 64 };
enum sign { MINUS = -1, PLUS = 1 };
struct point {
	int x, y;
};
struct deep {
	char tag;
	struct point at;
	const char *name;
	union {
		int number;
		float real;
	};
	struct {
		unsigned low : 3;
		int high : 5;
		bool is : 1;
	};
	struct point points[2];
	enum colour colours[2];
};
struct empty {
	int none[0];
};
struct __attribute__((packed)) packed {
	char a;
	long b;
};
union either {
	int whole;
	unsigned char bytes[4];
};
struct opaque;
struct node {
	int value;
	struct node *next;
};
typedef struct {
	int a;
} named;
typedef int (*compare)(const void *, const void *);
typedef float quad __attribute__((vector_size(16)));
typedef int line[3];
typedef const char *text;
struct grid {
	int cells[2][3];
	char label[8], full[4];
	unsigned char raw[3];
};
static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}
static line some = { 1, 2, 3 };
static struct node last = { 2, NULL };

SHOW(flag, _Bool, "_Bool", "true", "true", 1)
SHOW(letter, char, "char", "'a'", "\"a\"", 'a')
SHOW(newline, char, "char", "'\\n'", "\"\\n\"", '\n')
SHOW(escape, char, "char", "'\\x1b'", "\"\\u001b\"", 27)
SHOW(high, char, "char", "'\\xff'", "\"\\\\xff\"", (char)255)
SHOW(small, signed char, "signed char", "-128", "-128", -128)
SHOW(byte, unsigned char, "unsigned char", "200", "200", 200)
SHOW(shorter, short, "", "-32768", "-32768", -32768)
SHOW(word, unsigned short, "", "65535", "65535", 65535)
SHOW(number, int, "int", "-2147483648", "-2147483648", INT32_MIN)
SHOW(constant, const int, "", "42", "42", 42)
SHOW(size, size_t, "size_t", "18446744073709551615", "18446744073709551615",
     SIZE_MAX)
SHOW(wide, int64_t, "int64_t", "-9223372036854775808", "-9223372036854775808",
     INT64_MIN)
SHOW(huge, __int128, "__int128", "-170141183460469231731687303715884105728",
     "-170141183460469231731687303715884105728", (__int128)1 << 127)
SHOW(vast, unsigned __int128, "", "340282366920938463463374607431768211455",
     "340282366920938463463374607431768211455", ~(unsigned __int128)0)
SHOW(single, float, "float", "0.1", "0.1", 0.1f)
SHOW(twice, double, "double", "0.1", "0.1", 0.1)
SHOW(third, double, "double", "0.3333333333333333", "0.3333333333333333",
     1.0 / 3)
SHOW(large, double, "double", "1.7976931348623157e+308",
     "1.7976931348623157e+308", DBL_MAX)
SHOW(tiny, double, "double", "5e-324", "5e-324", 5e-324)
SHOW(minus, double, "double", "-0", "-0", -0.0)
SHOW(endless, float, "float", "-inf", "\"-inf\"", -INFINITY)
SHOW(nothing, double, "double", "nan", "\"nan\"", NAN)
SHOW(precise, long double, "long double", "3.1415926535897932385",
     "3.1415926535897932385", 3.14159265358979323846L)
SHOW(extreme, long double, "long double", "1e-4932", "1e-4932", 1e-4932L)
SHOW(turned, double complex, "", "1.5 - 2i", "{\"real\":1.5,\"imaginary\":-2}",
     1.5 - 2 * I)
SHOW(turned_short, float complex, "", "0 + 1i", "{\"real\":0,\"imaginary\":1}",
     1 * I)
SHOW(turned_long, long double complex, "", "1 + 0.1i",
     "{\"real\":1,\"imaginary\":0.1}", 1 + 0.1L * I)
SHOW(colour, enum colour, "enum colour", "GREEN", "\"GREEN\"", GREEN)
SHOW(grey, enum colour, "enum colour", "(enum colour) 7", "7", (enum colour)7)
SHOW(mixed, enum colour, "enum colour", "(enum colour) 3", "3", (enum colour)3)
SHOW(access, enum access, "enum access", "READ|EXECUTE", "\"READ|EXECUTE\"",
     (enum access)5)
SHOW(full, enum access, "enum access", "ALL", "\"ALL\"", ALL)
SHOW(not_all, enum access, "enum access", "(enum access) 8", "8",
     (enum access)8)
SHOW(sign, enum sign, "enum sign", "MINUS", "\"MINUS\"", MINUS)
SHOW(point, struct point, "struct point", "{x = 1, y = -2}",
     "{\"x\":1,\"y\":-2}", { 1, -2 })
SHOW(deep, struct deep, "struct deep",
     "{tag = 't', at = {...}, name = \"n\", number = 1, real = 1e-45, low = 7, "
     "high = -16, is = true, points = [{...}, {...}], colours = [RED, BLUE]}",
     "{\"tag\":\"t\",\"at\":\"{...}\",\"name\":\"n\",\"number\":1,\"real\":1e-45,"
     "\"low\":7,\"high\":-16,\"is\":true,\"points\":[\"{...}\",\"{...}\"],"
     "\"colours\":[\"RED\",\"BLUE\"]}",
     { .tag = 't', .name = "n", .number = 1, .low = 7, .high = -16, .is = 1,
       .colours = { RED, BLUE } })
SHOW(empty, struct empty, "struct empty", "{none = []}", "{\"none\":[]}", {})
SHOW(packed, struct packed, "struct packed", "{a = 'p', b = -3}",
     "{\"a\":\"p\",\"b\":-3}", { 'p', -3 })
SHOW(either, union either, "union either",
     "{whole = 258, bytes = [2, 1, 0, 0]}",
     "{\"whole\":258,\"bytes\":[2,1,0,0]}", { 258 })
SHOW(alias, named, "named", "{a = 5}", "{\"a\":5}", { 5 })
SHOW(grid, struct grid, "struct grid",
     "{cells = [[1, 2, 3], [4, 5, 6]], label = \"ab\", full = \"abcd\", raw = "
     "[1, 2, 255]}",
     "{\"cells\":[[1,2,3],[4,5,6]],\"label\":\"ab\",\"full\":\"abcd\",\"raw\":[1,"
     "2,255]}",
     { { { 1, 2, 3 }, { 4, 5, 6 } }, "ab", "abcd", { 1, 2, 255 } })
SHOW(vector, quad, "quad", "[1, 2.5, -3, 0]", "[1,2.5,-3,0]",
     { 1, 2.5f, -3, 0 })
SHOW(null, void *, "void *", "NULL", "null", NULL)
SHOW(address, void *, "void *", "0x10", "\"0x10\"", (void *)0x10)
SHOW(opaque, struct opaque *, "struct opaque *", "0x20", "\"0x20\"",
     (struct opaque *)0x20)
SHOW(node, const struct node *, "const struct node *", "", "", &last)
SHOW(pointer, int *const *, "int *const *", "0x30", "\"0x30\"",
     (int *const *)0x30)
SHOW(lines, line *, "line *", "", "", &some)
SHOW(row, const int (*)[3], "", "NULL", "null", NULL)
SHOW(callback, compare, "compare", "0xADDRESS <compare_ints>",
     "\"0xADDRESS <compare_ints>\"", compare_ints)
SHOW(inside, void *, "void *", "0xADDRESS <compare_ints+1>",
     "\"0xADDRESS <compare_ints+1>\"", (char *)compare_ints + 1)
SHOW(string, const char *, "const char *", "\"plain\"", "\"plain\"", "plain")
SHOW(quoted, char *, "char *", "\"a\\\"b\\\\\\t\\x1b[31m\"",
     "\"a\\\"b\\\\\\t\\u001b[31m\"", "a\"b\\\t\x1b[31m")
SHOW(foreign, text, "text", "\"k\xc3\xa4se\\xff\\xe2\\x80\\xae\"",
     "\"k\xc3\xa4se\\\\xff\\u202e\"", "k\xc3\xa4se\xff\xe2\x80\xae")
SHOW(bytes, const unsigned char *, "const unsigned char *", "\"u\"", "\"u\"",
     (const unsigned char *)"u")
SHOW(none, const char *, "const char *", "NULL", "null", NULL)
SHOW(bad, const char *, "const char *", "0x10 (unreadable)",
     "{\"unreadable\":\"0x10\"}", (const char *)0x10)
SHOW(worse, char *, "char *", "0xADDRESS (unreadable)",
     "{\"unreadable\":\"0xADDRESS\"}", (char *)0x8000000000000000)
SHOW(long_one, const char *, "const char *",
     "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"...",
     "{\"cut\":"
     "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}",
     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdefg")

static const struct shown *const shown[] = {
	&shown_flag,	   &shown_letter,      &shown_newline,
	&shown_escape,	   &shown_high,	       &shown_small,
	&shown_byte,	   &shown_shorter,     &shown_word,
	&shown_number,	   &shown_constant,    &shown_size,
	&shown_wide,	   &shown_huge,	       &shown_vast,
	&shown_single,	   &shown_twice,       &shown_third,
	&shown_large,	   &shown_tiny,	       &shown_minus,
	&shown_endless,	   &shown_nothing,     &shown_precise,
	&shown_extreme,	   &shown_turned,      &shown_turned_short,
	&shown_turned_long, &shown_colour,     &shown_grey,
	&shown_mixed,	   &shown_access,      &shown_full,
	&shown_not_all,	   &shown_sign,	       &shown_point,
	&shown_deep,	   &shown_empty,       &shown_packed,
	&shown_either,	   &shown_alias,       &shown_grid,
	&shown_vector,	   &shown_null,	       &shown_address,
	&shown_opaque,	   &shown_node,	       &shown_pointer,
	&shown_lines,	   &shown_row,	       &shown_callback,
	&shown_inside,	   &shown_string,      &shown_quoted,
	&shown_foreign,	   &shown_bytes,       &shown_none,
	&shown_bad,	   &shown_worse,       &shown_long_one,
};

/* Random numbers; the test computes the same ones for comparison. */
static void show_numbers(shim_type type)
{
	uint64_t bits = 88172645463325252ull;
	double value;

	for (int i = 0; i < 2000; i++) {
		bits ^= bits << 13;
		bits ^= bits >> 7;
		bits ^= bits << 17;
		memcpy(&value, &bits, sizeof(value));
		printf("double %a\t%s\t\n", value, print(type, &value, 0));
	}
}

__attribute__((noinline)) int none_taken(void)
{
	return 0;
}

__attribute__((noinline)) void *(*gives_pointer(int a, const char *b, ...))(int)
{
	(void)a, (void)b;
	return NULL;
}

static void show_function(void)
{
	shim_function function = (shim_function)gives_pointer;
	enum shim_type_kind kind = SHIM_TYPE_UNKNOWN;
	uint32_t count = 77, total = 0;
	uint64_t size = 0;
	char name[64];
	shim_type type = 0, again = 0;

	shim_get_parameter_count((shim_function)none_taken, &count);
	printf("count none\t%u\t0\n", count);
	shim_get_parameter_count(function, &count);
	printf("count two\t%u\t2\n", count);
	shim_get_parameter_info(function, 1, &type, 64, &total, name);
	printf("second\t%s %u\tb 2\n", name, total);
	shim_get_result_type(function, &type);
	shim_get_type_info(type, &kind, &size, 64, &total, name);
	printf("result\t%s %u %d %u\tvoid *(*)(int) 15 %d 8\n", name, total,
	       (int)kind, (unsigned)size, (int)SHIM_TYPE_POINTER);
	shim_get_result_type((shim_function)take_flag, &type);
	shim_get_type_info(type, &kind, &size, 64, &total, name);
	printf("void\t%s %d %u\tvoid %d 0\n", name, (int)kind, (unsigned)size,
	       (int)SHIM_TYPE_VOID);
	shim_get_parameter_info((shim_function)take_third, 0, &type, 0, NULL,
				NULL);
	shim_get_parameter_info((shim_function)take_large, 0, &again, 0, NULL,
				NULL);
	printf("same\t%d\t1\n", type && type == again);
}

static void show_all(void)
{
	shim_type type = 0;

	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
		show(shown[i]);
	show_function();
	shim_get_parameter_info((shim_function)take_twice, 0, &type, 0, NULL,
				NULL);
	show_numbers(type);
	shim_get_parameter_info((shim_function)take_string, 0, &type, 0, NULL,
				NULL);
	show_refusals((shim_function)take_string, type);
	show_strings_at_the_end(type);
	show_two_threads(&shown_deep);
	show_after_fork(&shown_deep);
}
