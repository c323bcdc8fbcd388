#include "base/short_name.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char *const pairs[][2] = {
	{ "main", "main" },
	{ "f(int)", "f()" },
	{ "ns::C::f() const", "ns::C::f()" },
	{ "void f<int>(int)", "f()" },
	{ "std::vector<int, std::allocator<int> > ns::C<char>::f<int>(int) &&",
	  "ns::C::f()" },
	{ "char const* const& f<1>()", "f()" },
	{ "ns::(anonymous namespace)::f(int)",
	  "ns::(anonymous namespace)::f()" },
	{ "(anonymous namespace)::f()", "(anonymous namespace)::f()" },
	{ "C::operator()(int) const", "C::operator()()" },
	{ "bool operator< <int>(C<int> const&, C<int> const&)", "operator<()" },
	{ "std::ostream& operator<< <int>(std::ostream&, C<int>)",
	  "operator<<()" },
	{ "C<int>::operator->() const", "C::operator->()" },
	{ "C::operator[](unsigned long)", "C::operator[]()" },
	{ "operator new[](unsigned long)", "operator new[]()" },
	{ "C::operator std::vector<int>() const", "C::operator std::vector()" },
	{ "operator\"\" _x(char const*)", "operator\"\" _x()" },
	{ "f<&(operator< <int>(C, C))>(int)", "f()" },
	{ "f(int)::{lambda(char)#1}::operator()(char) const",
	  "f::{lambda#1}::operator()()" },
	{ "f(int) const::C::g()", "f::C::g()" },
	{ "f(int) [clone .part.0]", "f() [clone .part.0]" },
	{ "ns::f[abi:cxx11](int)", "ns::f()" },
	{ "virtual thunk to ns::C<int>::f(int)",
	  "virtual thunk to ns::C::f()" },
	{ "decltype (({parm#1}.base)()) ns::f<int*>(int*)", "ns::f()" },
	{ "void (*&ns::f<void (*)(int)>(int))(char)", "ns::f()" },
	{ "void my_operator<int>(int)", "my_operator()" },
	/* Rust */
	{ "app::work::<dyn app::Shape>", "app::work" },
	{ "std::rt::lang_start::<()>::{closure#0}",
	  "std::rt::lang_start::{closure#0}" },
	{ "<alloc::vec::Vec<T,A> as core::ops::Index<I>>::index",
	  "<alloc::vec::Vec as core::ops::Index>::index" },
	{ "<fn(u8) -> Option<u8> as core::ops::FnOnce<()>>::call_once",
	  "<fn(u8) -> Option as core::ops::FnOnce>::call_once" },
	{ "<u64>::unchecked_add", "<u64>::unchecked_add" },
	{ "core::ptr::drop_in_place<std::f<()>::{{closure}}>",
	  "core::ptr::drop_in_place" },
	/* D */
	{ "D main", "D main" },
	{ "app.Shape.area() const", "app.Shape.area()" },
	{ "app.Shape.area() shared const", "app.Shape.area()" },
	{ "app.fold!(long, app.twice(long, int)).fold", "app.fold.fold" },
	{ "std.put!(char[]).put(scope char[]).__dgliteral3()",
	  "std.put.put.__dgliteral3()" },
	/* Go */
	{ "main.(*Shape).Area", "main.(*Shape).Area" },
	{ "main.fold[...].func1", "main.fold.func1" },
	/* What has another form is kept. */
	{ "<T>", "<T>" },
	{ "<T<u8>::f", "<T<u8>::f" },
	{ "f!(", "f!(" },
	{ "a!b", "a!b" },
	{ "", "" },
	{ "f<1", "f<1" },
	{ "f(int", "f(int" },
	{ "f(int)g", "f(int)g" },
	{ "(int)", "(int)" },
	{ "(*", "(*" },
	{ "operator", "operator" },
	{ "{lambda", "{lambda" },
	{ ">", ">" },
};

Test(short_name, has_no_types_but_the_scopes_and_the_name)
{
	size_t i;

	for (i = 0; i < COUNT(pairs); i++)
		cr_expect(eq(str, (char *)short_name(pairs[i][0]),
			     (char *)pairs[i][1]),
			  "%s", pairs[i][0]);
}

#define FULL  "int leveldb::port::CondVar<int>::Wait(int)"
#define BRIEF "leveldb::port::CondVar::Wait()"

static const struct {
	const char *full, *brief;
	size_t columns;
	const char *text;
} fitted[] = {
	{ FULL, BRIEF, SIZE_MAX, FULL },
	{ FULL, BRIEF, 42, FULL },
	{ FULL, BRIEF, 41, BRIEF },
	{ FULL, BRIEF, 30, BRIEF },
	{ FULL, BRIEF, 29, "leveldb::...::CondVar::Wait()" },
	{ FULL, BRIEF, 28, "leveldb::...::Wait()" },
	{ FULL, BRIEF, 19, "...::Wait()" },
	{ FULL, BRIEF, 10, "Wait()" },
	{ FULL, BRIEF, 5, "Wait\u2026" },
	{ "a_function_of_C", "a_function_of_C", 8, "a_funct\u2026" },
	{ "a::b(T)[x=\"::\"]", "a::b()[x=\"::\"]", 11, "b()[x=\"::\"]" },
	{ "C::operator A::B::C()", "C::operator A::B::C()", 18,
	  "operator A::B::C()" },
	{ "a\033b::cccc::d(int)", "a\033b::cccc::d()", 16,
	  "a\\x1bb::...::d()" },
};

Test(short_name, the_end_of_a_name_fits_longest)
{
	size_t i;

	for (i = 0; i < COUNT(fitted); i++) {
		size_t columns = fitted[i].columns, size;
		char *text;
		FILE *out = open_memstream(&text, &size);

		put_name_fitted(out, fitted[i].full, fitted[i].brief, columns);
		fclose(out);
		cr_expect(eq(str, text, (char *)fitted[i].text), "%zu of %s",
			  columns, fitted[i].full);
		free(text);
	}
}
