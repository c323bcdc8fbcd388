#include "os/characters.h"
#include "os/text.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdint.h>
#include <string.h>

Test(text, is_appended_to_and_terminated)
{
	char memory[16];
	struct text text;

	text_init(&text, memory, sizeof(memory));
	cr_assert(eq(str, memory, ""));
	text_add(&text, "ab");
	text_add_part(&text, "cdef", 2);
	text_add_number(&text, 120);
	cr_assert(eq(str, memory, "abcd120"));
	cr_assert(eq(sz, text.length, 7));
	cr_assert(not(text.cut));
}

Test(text, is_cut_at_the_end_of_its_memory_and_says_so)
{
	char memory[6] = "xxxxx";
	struct text text;

	text_init(&text, memory, 5);
	text_add(&text, "abcd");
	cr_assert(not(text.cut));
	text_add(&text, "");
	cr_assert(not(text.cut));
	text_add(&text, "e");
	cr_assert(text.cut);
	cr_assert(eq(str, memory, "abcd"));
	cr_assert(eq(chr, memory[5], '\0'));
}

Test(text, has_room_for_its_nul_alone)
{
	char memory[2] = { 'x', 'x' };
	struct text text;

	text_init(&text, memory, 1);
	text_add(&text, "a");
	cr_assert(text.cut);
	cr_assert(eq(chr, memory[0], '\0'));
	cr_assert(eq(chr, memory[1], 'x'));
}

Test(text, numbers_are_decimal)
{
	static const struct {
		uint64_t number;
		const char *want;
	} cases[] = {
		{ 0, "0" },
		{ 9, "9" },
		{ 10, "10" },
		{ UINT64_MAX, "18446744073709551615" },
	};
	char memory[32];
	struct text text;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		text_init(&text, memory, sizeof(memory));
		text_add_number(&text, cases[i].number);
		cr_expect(eq(str, memory, (char *)cases[i].want));
	}
}

Test(text, equal_means_the_whole_string)
{
	cr_expect(text_equal("", ""));
	cr_expect(text_equal("ab", "ab"));
	cr_expect(not(text_equal("ab", "abc")));
	cr_expect(not(text_equal("abc", "ab")));
	cr_expect(not(text_equal("", "a")));
}

Test(text, after_gives_the_rest_behind_a_prefix)
{
	cr_expect(eq(str, (char *)text_after("SHIM_X=1", "SHIM_"), "X=1"));
	cr_expect(eq(str, (char *)text_after("abc", "abc"), ""));
	cr_expect(eq(str, (char *)text_after("abc", ""), "abc"));
	cr_expect(text_after("ab", "abc") == NULL);
	cr_expect(text_after("xabc", "abc") == NULL);
}

Test(text, base_is_what_follows_the_last_slash)
{
	cr_expect(eq(str, (char *)text_base("/a/b/c"), "c"));
	cr_expect(eq(str, (char *)text_base("c"), "c"));
	cr_expect(eq(str, (char *)text_base("/a/"), ""));
	cr_expect(eq(str, (char *)text_base(""), ""));
}

Test(text, reads_numbers_up_to_what_is_none)
{
	const char *at = "7fff01-42 g";

	cr_assert(eq(u64, text_read_hex(&at), 0x7fff01));
	cr_assert(eq(chr, *at, '-'));
	at++;
	cr_assert(eq(u64, text_read_decimal(&at), 42));
	cr_assert(eq(chr, *at, ' '));
	at++;
	cr_assert(eq(u64, text_read_hex(&at), 0));
	cr_assert(eq(chr, *at, 'g'));
}

/* The same rules as scripts/common/characters.c. */
Test(text, what_a_terminal_acts_on_is_escaped)
{
	static const struct {
		const char *given, *wanted;
	} all[] = {
		{ "a b~", "a b~" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		  "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "a\x1b[31m\n\x7f", "a\\x1b[31m\\x0a\\x7f" },
		{ "\xc2\x9b\xc2\xa0", "\\xc2\\x9b\xc2\xa0" },
		{ "\x9b", "\\x9b" },
		{ "\xe2\x80\xaex\xe2\x81\xa6",
		  "\\xe2\\x80\\xaex\\xe2\\x81\\xa6" },
		{ "\xd8\x9c\xef\xbb\xbf", "\\xd8\\x9c\\xef\\xbb\\xbf" },
		{ "\xe2\x80\xa8\xe2\x80\x8e\xe2\x80\x8d",
		  "\\xe2\\x80\\xa8\\xe2\\x80\\x8e\xe2\x80\x8d" },
		{ "\xc0\x80\xe0\x80\x80\xed\xa0\x80",
		  "\\xc0\\x80\\xe0\\x80\\x80\\xed\\xa0\\x80" },
		{ "\xf4\x90\x80\x80\xf0\x80\x80\x80\xff",
		  "\\xf4\\x90\\x80\\x80\\xf0\\x80\\x80\\x80\\xff" },
		{ "\xe2\x82", "\\xe2\\x82" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		char memory[128];
		struct text text;

		text_init(&text, memory, sizeof(memory));
		text_add_harmless(&text, all[i].given);
		cr_expect(eq(str, memory, (char *)all[i].wanted));
	}
}

Test(characters, are_decoded_within_the_bytes_there_are)
{
	static const struct {
		const char *text;
		size_t size, length;
		uint32_t character;
	} all[] = {
		{ "a", 1, 1, 'a' },
		{ "", SIZE_MAX, 1, 0 },
		{ "\xc3\xa4", 2, 2, 0xe4 },
		{ "\xc3\xa4", 1, 0, 0xc3 },
		{ "\xe2\x82\xac", 3, 3, 0x20ac },
		{ "\xe2\x82\xac", 2, 0, 0xe2 },
		{ "\xf0\x9f\x98\x80", SIZE_MAX, 4, 0x1f600 },
		{ "\xf0\x9f\x98\x80", 3, 0, 0xf0 },
		{ "\xe2\x82", SIZE_MAX, 0, 0xe2 },
		{ "\xed\xa0\x80", SIZE_MAX, 0, 0xed },
		{ "\xf4\x90\x80\x80", SIZE_MAX, 0, 0xf4 },
		{ "\xc1\xbf", SIZE_MAX, 0, 0xc1 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		uint32_t character;

		cr_expect(eq(sz,
			     character_at(all[i].text, all[i].size, &character),
			     all[i].length));
		cr_expect(eq(u32, character, all[i].character));
	}
}

/* Controls, and what reverses text or has no width. */
Test(characters, harmful_ones_are_those_of_seven_ranges)
{
	static const struct {
		uint32_t first, last;
	} harmful[] = {
		{ 0, 0x1f },	    { 0x7f, 0x9f },	{ 0x61c, 0x61c },
		{ 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 },
		{ 0xfeff, 0xfeff },
	};
	unsigned range = 0;

	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		bool is_in = range < sizeof(harmful) / sizeof(*harmful) &&
			     c >= harmful[range].first;

		if (character_is_harmless(c) == is_in)
			cr_fail("%#x is taken for %s", c,
				is_in ? "harmless" : "harmful");
		range += is_in && c == harmful[range].last;
	}
	cr_expect(eq(uint, range, sizeof(harmful) / sizeof(*harmful)));
}
