#include "base/json.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static char *text;
static size_t size;
static struct json json;

static void begin(void)
{
	json = json_begin(open_memstream(&text, &size));
}

static const char *end(void)
{
	json_end(&json);
	fclose(json.out);
	return text;
}

Test(json, puts_commas_between_values_and_nowhere_else, .init = begin)
{
	json_object(&json);
	json_key_array(&json, "a");
	json_count(&json, 1);
	json_count(&json, UINT64_MAX);
	json_array(&json);
	json_close_array(&json);
	json_object(&json);
	json_close_object(&json);
	json_null(&json);
	json_close_array(&json);
	json_key_text(&json, "b", NULL);
	json_key_flag(&json, "c", true);
	json_key_integer(&json, "d", -7);
	json_key_object(&json, "e");
	json_key_null(&json, "f");
	json_close_object(&json);
	json_close_object(&json);
	cr_assert(eq(str, (char *)end(),
		     "{\"a\":[1,18446744073709551615,[],{},null],\"b\":null,"
		     "\"c\":true,\"d\":-7,\"e\":{\"f\":null}}\n"));
}

Test(json, begins_a_line_after_the_comma, .init = begin)
{
	json_array(&json);
	json_line(&json, 0);
	json_count(&json, 1);
	json_line(&json, 1);
	json_count(&json, 2);
	json_count(&json, 3);
	json_line(&json, 0);
	json_close_array(&json);
	cr_assert(eq(str, (char *)end(), "[\n1,\n 2,3\n]\n"));
}

Test(json, escapes_what_a_terminal_or_a_reader_takes_for_something_else,
     .init = begin)
{
	json_text(&json, "a \"b\" \\ \033[m \xc3\xa9 \xff \xe2\x80\xae <");
	cr_assert(eq(str, (char *)end(),
		     "\"a \\\"b\\\" \\\\ \\u001b[m \xc3\xa9 \\ufffd "
		     "\\u202e <\"\n"));
}

Test(json, numbers_that_are_not_finite_are_null, .init = begin)
{
	json_array(&json);
	json_number(&json, NAN, 17);
	json_number(&json, -INFINITY, 17);
	json_number(&json, 0.1, 17);
	json_number(&json, 1.0 / 3, 9);
	json_thousandths(&json, 0);
	json_thousandths(&json, 1234567);
	json_thousandths(&json, 1007);
	json_close_array(&json);
	cr_assert(eq(str, (char *)end(),
		     "[null,null,0.10000000000000001,0.333333333,0.000,"
		     "1234.567,1.007]\n"));
}

/* --- mistakes --- */

static void value_without_key(void)
{
	json_object(&json);
	json_count(&json, 1);
}

static void key_in_array(void)
{
	json_array(&json);
	json_key(&json, "a");
}

static void key_at_the_top(void)
{
	json_key(&json, "a");
}

static void key_after_key(void)
{
	json_object(&json);
	json_key(&json, "a");
	json_key(&json, "b");
}

static void key_without_value(void)
{
	json_object(&json);
	json_key(&json, "a");
	json_close_object(&json);
}

static void line_after_key(void)
{
	json_object(&json);
	json_key(&json, "a");
	json_line(&json, 0);
}

static void array_closed_as_object(void)
{
	json_array(&json);
	json_close_object(&json);
}

static void object_closed_as_array(void)
{
	json_object(&json);
	json_close_array(&json);
}

static void closed_twice(void)
{
	json_array(&json);
	json_close_array(&json);
	json_close_array(&json);
}

static void two_values_at_the_top(void)
{
	json_count(&json, 1);
	json_count(&json, 2);
}

static void never_closed(void)
{
	json_array(&json);
	json_end(&json);
}

static void nothing(void)
{
	json_end(&json);
}

static void too_deep(void)
{
	for (int i = 0; i <= JSON_DEPTH_MAX; i++)
		json_array(&json);
}

static void (*const mistakes[])(void) = {
	value_without_key,
	key_in_array,
	key_at_the_top,
	key_after_key,
	key_without_value,
	line_after_key,
	array_closed_as_object,
	object_closed_as_array,
	closed_twice,
	two_values_at_the_top,
	never_closed,
	nothing,
	too_deep,
};

ParameterizedTestParameters(json, wrong_nesting_ends_the_program)
{
	static int numbers[sizeof(mistakes) / sizeof(*mistakes)];
	int count = sizeof(numbers) / sizeof(*numbers), i;

	for (i = 0; i < count; i++)
		numbers[i] = i;
	return cr_make_param_array(int, numbers, (size_t)count);
}

ParameterizedTest(int *number, json, wrong_nesting_ends_the_program,
		  .init = begin, .exit_code = 1)
{
	mistakes[*number]();
	exit(0);
}

Test(json, the_greatest_depth_is_no_mistake, .init = begin)
{
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_array(&json);
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_close_array(&json);
	cr_assert(eq(str, (char *)end(), "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]\n"));
}
