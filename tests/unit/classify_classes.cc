/* Classes of C++, for test_classify.c, and how they are passed. */
#include <cstddef>

#define CLASSES \
	C(plain, "registers 4 I4", struct plain { int a; }) \
	C(empty, "nothing 1", struct empty {}) \
	C(other_constructor, "registers 4 I4", \
	  struct other_constructor { int a; other_constructor(int); }) \
	C(copies, "reference 4", struct copies { int a; copies(const copies &); }) \
	C(copies_itself, "reference 4", \
	  struct copies_itself { int a; copies_itself(copies_itself &); }) \
	C(copies_with_more, "unknown 4", \
	  struct copies_with_more \
	  { int a; copies_with_more(const copies_with_more &, int = 0); }) \
	C(assigns_moves, "unknown 4", \
	  struct assigns_moves { int a; assigns_moves &operator=(assigns_moves &&); }) \
	C(moves, "reference 4", struct moves { int a; moves(moves &&); }) \
	C(copies_by_default, "registers 4 I4", \
	  struct copies_by_default \
	  { int a; copies_by_default(const copies_by_default &) = default; }) \
	C(moves_by_default, "registers 4 I4", \
	  struct moves_by_default \
	  { int a; moves_by_default(const moves_by_default &) = delete; \
	    moves_by_default(moves_by_default &&) = default; }) \
	C(never_copies, "reference 4", \
	  struct never_copies \
	  { int a; never_copies(const never_copies &) = delete; \
	    never_copies(never_copies &&) = delete; }) \
	C(by_default_outside, "reference 4", \
	  struct by_default_outside \
	  { int a; by_default_outside(const by_default_outside &); }; \
	  inline by_default_outside::by_default_outside( \
		  const by_default_outside &) = default) \
	C(destroyed, "reference 4", struct destroyed { int a; ~destroyed(); }) \
	C(destroyed_by_default, "registers 4 I4", \
	  struct destroyed_by_default \
	  { int a; ~destroyed_by_default() = default; }) \
	C(assigned, "registers 4 I4", \
	  struct assigned { int a; assigned &operator=(const assigned &); }) \
	C(assigned_and_moved, "registers 4 I4", \
	  struct assigned_and_moved \
	  { int a; assigned_and_moved(const assigned_and_moved &) = default; \
	    assigned_and_moved &operator=(assigned_and_moved &&); }) \
	C(from_pointer, "registers 4 I4", \
	  struct from_pointer { int a; from_pointer(from_pointer *); }) \
	C(from_another, "registers 4 I4", \
	  struct from_another { int a; from_another(const plain &); }) \
	C(by_template, "registers 4 I4", \
	  struct by_template { int a; template <class T> by_template(const T &); }) \
	C(longer_name, "registers 4 I4", \
	  struct longer_name { int a; void longer_names(const longer_name &); }) \
	C(method, "registers 4 I4", \
	  struct method { int a; void take(const method &); }) \
	C(has_virtual, "reference 8", struct has_virtual { virtual void f() {} }) \
	C(has_virtual_base, "reference 16", \
	  struct has_virtual_base : virtual plain {}) \
	C(has_base, "registers 16 I4 S8", struct has_base : plain { double b; }) \
	C(has_empty_base, "registers 8 S8", \
	  struct has_empty_base : empty { double b; }) \
	C(has_copying_base, "reference 4", struct has_copying_base : copies {}) \
	C(has_destroyed_member, "reference 8", \
	  struct has_destroyed_member { int a; destroyed b; }) \
	C(has_destroyed_members, "reference 12", \
	  struct has_destroyed_members { int a; destroyed b[2]; }) \
	C(has_static_member, "registers 4 I4", \
	  struct has_static_member { int a; static copies b; }) \
	C(has_union, "registers 8 I8", \
	  struct has_union { union { int a; double b; }; }) \
	C(has_reference, "registers 8 I8", struct has_reference { int &a; }) \
	C(has_rvalue, "registers 8 I8", struct has_rvalue { int &&a; }) \
	C(has_null, "registers 8 I8", struct has_null { std::nullptr_t a; }) \
	C(points_to_member, "registers 8 I8", \
	  struct points_to_member { int plain::*a; }) \
	C(points_to_member_behind, "registers 16 I8 I8", \
	  struct points_to_member_behind { long a; int plain::*b; }) \
	C(pointer_to_member, "registers 8 I8", typedef int plain::*pointer_to_member) \
	C(pointer_to_method, "registers 16 I8 I8", \
	  typedef void (plain::*pointer_to_method)()) \
	C(points_to_method, "registers 16 I8 I8", \
	  struct points_to_method { void (plain::*a)(); }) \
	C(byte, "registers 1 I1", enum class byte : unsigned char { a })

#define C(name, how, ...) \
	__VA_ARGS__; \
	extern "C" { __attribute__((used)) name *class_##name; }
CLASSES
#undef C

template <class T> struct box { T a; box(const box &); };
extern "C" { __attribute__((used)) box<int> *class_box; }
static_assert(sizeof(box<int>) == 4, "");
template <class T> struct bag { T a; };
extern "C" { __attribute__((used)) bag<int> *class_bag; }
static_assert(sizeof(bag<int>) == 4, "");

struct row {
	const char *name, *how;
};

extern "C" {
extern const row classes[] = {
#define C(name, how, ...) { "class_" #name, how },
	CLASSES
#undef C
	{ "class_box", "reference 4" },
	{ "class_bag", "registers 4 I4" },
	{ nullptr, nullptr },
};
}
