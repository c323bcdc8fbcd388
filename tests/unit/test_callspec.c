/*
 * The grammar of --filter (row M-82).
 */
#include "dispatch/callspec.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *list, *object, *name, *file;
	bool is_program, want;
} cases[] = {
	{ "", "/p", "f", "", true, true },
	{ "all", "/p", "f", "", true, true },
	{ "none", "/p", "f", "", true, false },
	{ "disabled", "/p", "f", "", true, false },
	{ "program", "/p", "f", "", true, true },
	{ "program", "/lib/libz.so.1", "f", "", false, false },
	{ "-program", "/p", "f", "", true, false },
	{ "-program", "/lib/libz.so.1", "f", "", false, true },
	{ "libz", "/lib/libz.so.1", "f", "", false, true },
	{ "libz.so", "/lib/libz.so.1", "f", "", false, true },
	{ "libz.so.1", "/lib/libz.so.1", "f", "", false, true },
	{ "lib", "/lib/libz.so.1", "f", "", false, false },
	{ "lib*", "/lib/libz.so.1", "f", "", false, true },
	{ "M:f", "/p", "f", "", true, true },
	{ "M:f", "/p", "ff", "", true, false },
	{ "M:f*", "/p", "ff", "", true, true },
	{ "M:?", "/p", "f", "", true, true },
	{ "M:*a*b*", "/p", "xaxbx", "", true, true },
	{ "M:*a*b*", "/p", "xbxax", "", true, false },
	{ "-M:f", "/p", "f", "", true, false },
	{ "-M:f", "/p", "g", "", true, true },
	/* the last matching item decides */
	{ "all,-M:f", "/p", "f", "", true, false },
	{ "all,-M:f,M:f", "/p", "f", "", true, true },
	{ "-M:*,M:f", "/p", "f", "", true, true },
	{ "M:f,none", "/p", "f", "", true, false },
	{ ",,M:f,", "/p", "f", "", true, true },
	/* C++ */
	{ "N:a", "/p", "_ZN1a5Class3runEv", "", true, true },
	{ "N:a::", "/p", "_ZN1a5Class3runEv", "", true, true },
	{ "N:b", "/p", "_ZN1a5Class3runEv", "", true, false },
	{ "N:a", "/p", "_Z1av", "", true, false },
	{ "N:a::b", "/p", "_ZN1a1b1fEv", "", true, true },
	{ "N:a::b", "/p", "_ZN1a1c1fEv", "", true, false },
	{ "N:std", "/p", "_ZNSt6vectorIiSaIiEE9push_backERKi", "", true, true },
	{ "N:std", "/p", "_ZSt4moveIiEvT_", "", true, true },
	{ "T:Class", "/p", "_ZN1a5Class3runEv", "", true, true },
	{ "T:a::Class", "/p", "_ZN1a5Class3runEv", "", true, true },
	{ "T:b::Class", "/p", "_ZN1a5Class3runEv", "", true, false },
	{ "T:run", "/p", "_ZN1a5Class3runEv", "", true, false },
	{ "T:vector", "/p", "_ZNSt6vectorIiSaIiEE9push_backERKi", "", true,
	  true },
	{ "M:run", "/p", "_ZN1a5Class3runEv", "", true, true },
	{ "M:run", "/p", "_ZNK1a5Class3runEv", "", true, true },
	{ "M:push_back", "/p", "_ZNSt6vectorIiSaIiEE9push_backERKi", "", true,
	  true },
	{ "M:Class", "/p", "_ZN1a5ClassC2Ev", "", true, true },
	{ "T:Class", "/p", "_ZN1a5ClassD0Ev", "", true, true },
	{ "M:operator", "/p", "_ZN1a5ClassplERKS0_", "", true, true },
	{ "M:f", "/p", "_ZL1fi", "", true, true },
	{ "M:f", "/p", "_Z1fIiEvT_", "", true, true },
	/* damaged names */
	{ "M:f", "/p", "_ZN999999f", "", true, false },
	{ "T:a", "/p", "_ZN1aI", "", true, false },
	{ "N:a", "/p", "_Z", "", true, false },
	/* files */
	{ "F:x.c", "/p", "f", "/src/x.c", true, true },
	{ "F:x.c", "/p", "f", "/src/y.c", true, false },
	{ "F:/src/*", "/p", "f", "/src/y.c", true, true },
	{ "-F:x.c", "/p", "f", "", true, true },
	/* blanks */
	{ " M:f , M:g ", "/p", "f", "", true, true },
	{ " M:f ,\tM:g\r", "/p", "g", "", true, true },
	{ " ,\t ", "/p", "f", "", true, true },
};

Test(callspec, functions_are_let_through_as_listed)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cr_assert(callspec_read(cases[i].list), "%s", cases[i].list);
		cr_expect(
			eq(int,
			   callspec_admits(cases[i].object, cases[i].is_program,
					   cases[i].name, cases[i].file),
			   cases[i].want),
			"%s: %s", cases[i].list, cases[i].name);
	}
}

Test(callspec, what_cannot_be_read_is_refused_and_lets_all_through)
{
	static const char *const lists[] = { "-", "M:", "X:foo", "all,-",
					     "N:,all" };

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		cr_expect(not(callspec_read(lists[i])), "%s", lists[i]);
		cr_expect(callspec_admits("/p", true, "f", ""));
	}
}

Test(callspec, it_says_what_it_needs)
{
	callspec_read("program,-libz.so");
	cr_expect(not(callspec_needs_symbols()));
	cr_expect(not(callspec_needs_files()));
	callspec_read("N:a");
	cr_expect(callspec_needs_symbols());
	callspec_read("F:a.c");
	cr_expect(callspec_needs_files());
}

Test(callspec, a_list_has_as_many_items_as_one_likes)
{
	static char list[300000];
	size_t size = 0;

	for (int i = 0; i < 20000; i++)
		size += (size_t)sprintf(list + size, "-M:f%d,", i);
	strcpy(list + size, "-M:last");
	cr_assert(callspec_read(list));
	cr_expect(not(callspec_admits("/p", true, "f0", "")));
	cr_expect(not(callspec_admits("/p", true, "f19999", "")));
	cr_expect(not(callspec_admits("/p", true, "last", "")));
	cr_expect(callspec_admits("/p", true, "f20000", ""));
	/* The previous list has no effect. */
	cr_assert(callspec_read("-M:g"));
	cr_expect(callspec_admits("/p", true, "f0", ""));
}

Test(callspec, lines_become_a_list)
{
	static const struct {
		const char *lines, *list;
	} joined[] = {
		{ "", "" },
		{ "M:a", "M:a" },
		{ "M:a\n", "M:a," },
		{ "M:a\nM:b,M:c\n\nM:d", "M:a,M:b,M:c,,M:d" },
		{ "# all of it", "" },
		{ "M:a # some\n\t#\nM:b", "M:a ,\t,M:b" },
		{ "F:a#b.c", "F:a#b.c" },
	};
	char text[64];

	for (size_t i = 0; i < sizeof(joined) / sizeof(*joined); i++) {
		strcpy(text, joined[i].lines);
		callspec_join(text);
		cr_expect(eq(str, text, (char *)joined[i].list));
	}
}
