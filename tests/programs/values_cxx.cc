/* Values of C++: see values.h. */
#include "values.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

enum class Small : unsigned char { LOW = 1, HIGH = 200 };
namespace space {
struct Base {
	int x;
	virtual ~Base() {}
	static int shared;
};
struct Derived : Base {
	std::string name = "named";
	std::vector<short> list = { 1, -2 };
	std::optional<double> maybe;
	bool is = true;
	int get(int by) const { return x + by; }
};
int Base::shared;
template <typename T, int N> struct Box {
	T held[N];
};
} // namespace space
namespace {
struct Hidden {
	char c;
};
} // namespace
struct Virtual : virtual space::Base {
	int own = 3;
};
static void function(int) {}
static int number = 42;
static std::string longer(100, 'x');
static std::string odd("a\0\x1b\"\xff", 5);
static std::vector<int> many(20, 7);
static std::vector<std::string> names = { "a", "b" };
typedef std::vector<space::Box<int, 1>> Boxes;
typedef std::array<short, 3> Fixed;
typedef std::unique_ptr<int, void (*)(int *)> Owner;
static Boxes boxes = { { { 1 } }, { { 2 } } };
static std::vector<int> none;
static space::Derived derived;
static const char letters[6] = "hello";
static int pair_of[2] = { 1, 2 };
static std::optional<std::string> some("some");
static Owner owner((int *)0x40, [](int *) {});
static const std::string *const bad = (const std::string *)0x10;

/* References: the places of their addresses. */
static const void *at_number = &number, *at_longer = &longer, *at_odd = &odd,
		  *at_many = &many, *at_names = &names, *at_boxes = &boxes,
		  *at_none = &none, *at_derived = &derived,
		  *at_letters = &letters, *at_pair = &pair_of,
		  *at_some = &some,
		  *at_function = reinterpret_cast<const void *>(&function);

#define VIEW std::string_view
#define X64                                                                    \
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define SEVENS "7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7"

SHOW(is, bool, "bool", "false", "false", false)
SHOW(small, Small, "Small", "HIGH", "\"HIGH\"", Small::HIGH)
SHOW(other, Small, "Small", "(Small) 7", "7", (Small)7)
SHOW(wide, wchar_t, "wchar_t", "'\xe2\x82\xac'", "\"\xe2\x82\xac\"", L'\u20ac')
SHOW(utf16, char16_t, "char16_t", "'x'", "\"x\"", u'x')
SHOW(utf32, char32_t, "char32_t", "'\xf0\x9f\x90\x9f'",
     "\"\xf0\x9f\x90\x9f\"", U'\U0001f41f')
SHOW(nothing, std::nullptr_t, "", "NULL", "null", nullptr)
SHOW(hidden, Hidden, "(anonymous namespace)::Hidden", "{c = 'h'}",
     "{\"c\":\"h\"}", { 'h' })
SHOW(field, int space::Base::*, "", "8", "8", &space::Base::x)
SHOW(method, int (space::Derived::*)(int) const, "",
     "0xADDRESS <_ZNK5space7Derived3getEi>",
     "\"0xADDRESS <_ZNK5space7Derived3getEi>\"", &space::Derived::get)
SHOW(none_of, int (space::Derived::*)(int) const, "", "NULL", "null", nullptr)
SHOW_AT(reference, int &, &at_number, "int &", "42", "42")
SHOW_AT(moved, int &&, &at_number, "int &&", "42", "42")
SHOW_AT(called, void (&)(int), &at_function, "void (&)(int)",
	"0xADDRESS <_ZL8functioni>", "\"0xADDRESS <_ZL8functioni>\"")
SHOW_AT(array, const char (&)[6], &at_letters, "const char (&)[6]",
	"\"hello\"", "\"hello\"")
SHOW_AT(pair, int (&)[2], &at_pair, "int (&)[2]", "[1, 2]", "[1,2]")
SHOW_AT(derived, const space::Derived &, &at_derived, "const space::Derived &",
	"{Base = {...}, name = \"named\", list = {size 2: 1, -2}, maybe = "
	"nullopt, is = true}",
	"{\"Base\":\"{...}\",\"name\":\"named\",\"list\":{\"size\":2,\"elements\":"
	"[1,-2]},\"maybe\":null,\"is\":true}")
SHOW(string, std::string, "std::string", "\"short\"", "\"short\"", "short")
SHOW(hollow, std::string, "std::string", "\"\"", "\"\"", "")
SHOW_AT(longer, const std::string &, &at_longer, "const std::string &",
	"\"" X64 "\"...", "{\"cut\":\"" X64 "\"}")
SHOW_AT(odd, std::string &&, &at_odd, "std::string &&",
	"\"a\\x00\\x1b\\\"\\xff\"", "\"a\\u0000\\u001b\\\"\\\\xff\"")
SHOW_AT(bad, const std::string &, &bad, "", "0x10 (unreadable)",
	"{\"unreadable\":\"0x10\"}")
SHOW(view, VIEW, "std::string_view", "\"vi\"", "\"vi\"", VIEW("view", 2))
SHOW_AT(many, std::vector<int> &, &at_many, "std::vector<int> &",
	"{size 20: " SEVENS ", ...}",
	"{\"size\":20,\"elements\":[" SEVENS ",\"...\"]}")
SHOW_AT(names, const std::vector<std::string> &, &at_names,
	"const std::vector<std::string> &", "{size 2: \"a\", \"b\"}",
	"{\"size\":2,\"elements\":[\"a\",\"b\"]}")
SHOW_AT(boxes, Boxes &, &at_boxes,
	"Boxes &",
	"{size 2: {held = [1]}, {held = [2]}}",
	"{\"size\":2,\"elements\":[{\"held\":[1]},{\"held\":[2]}]}")
SHOW_AT(none, std::vector<int> &, &at_none, "", "{size 0}",
	"{\"size\":0,\"elements\":[]}")
SHOW(fixed, Fixed, "Fixed", "[1, 2, -3]", "[1,2,-3]",
     { 1, 2, -3 })
SHOW(unique, std::unique_ptr<int>, "std::unique_ptr<int>", "NULL", "null", {})
SHOW_AT(owner, Owner, &owner, "Owner", "0x40",
	"\"0x40\"")
SHOW(shared, std::shared_ptr<space::Base>, "std::shared_ptr<space::Base>",
     "NULL", "null", {})
SHOW(maybe, std::optional<int>, "std::optional<int>", "5", "5", 5)
SHOW(never, std::optional<int>, "std::optional<int>", "nullopt", "null", {})
SHOW_AT(some, std::optional<std::string> &, &at_some, "", "\"some\"",
	"\"some\"")

static const struct shown *const shown[] = {
	&shown_is,	&shown_small,	&shown_other,	  &shown_wide,
	&shown_utf16,	&shown_utf32,	&shown_nothing,	  &shown_hidden,
	&shown_field,	&shown_method,	&shown_none_of,	  &shown_reference,
	&shown_moved,	&shown_called,	&shown_array,	  &shown_pair,
	&shown_derived, &shown_string,	&shown_hollow,	  &shown_longer,
	&shown_odd,	&shown_bad,	&shown_view,	  &shown_many,
	&shown_names,	&shown_boxes,	&shown_none,	  &shown_fixed,
	&shown_unique,	&shown_owner,	&shown_shared,	  &shown_maybe,
	&shown_never,	&shown_some,
};

static void show_all(void)
{
	shim_function get;
	shim_type type = 0;
	char name[64];
	int (space::Derived::*method)(int) const = &space::Derived::get;

	for (const struct shown *one : shown)
		show(one);
	memcpy(&get, &method, sizeof(get));
	shim_get_parameter_info(get, 0, &type, sizeof(name), NULL, name);
	tell("member", "first", name, "this");
	shim_get_type_info(type, NULL, NULL, sizeof(name), NULL, name);
	tell("member", "type", strstr(name, "const space::Derived *"), name);
	shim_get_parameter_info(get, 1, &type, sizeof(name), NULL, name);
	tell("member", "second", name, "by");
	show_refusals((shim_function)take_string, type);
	show_two_threads(&shown_names);
	show_after_fork(&shown_names);
}
