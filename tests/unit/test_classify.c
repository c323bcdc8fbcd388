/*
 * How values of each type are passed, by the debug information of the variables in this
 * file.
 */
#include "inspect/debuginfo/classify.h"
#include "inspect/debuginfo/signature.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dwarf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static Dwarf_Die definition; /* of each class that is only declared */
static bool has_definition;

bool signature_find_definition(Dwarf_Die *declared, Dwarf_Die *defined)
{
	(void)declared;
	*defined = definition;
	return has_definition;
}

/* --- types: name, how it is passed, declaration --- */

#define VECTOR(size) __attribute__((vector_size(size)))
#define ALIGNED(n)   __attribute__((aligned(n)))
#define PACKED	     __attribute__((packed))

enum small { SMALL };
enum large { LARGE = 1ull << 40 };
typedef int typedef_of_int;
typedef const volatile typedef_of_int typedef_of_const;
typedef int ALIGNED(32) aligned_int;
typedef struct {
	int a;
} ALIGNED(32) aligned_struct;
typedef struct {
	int a;
} plain_struct;
typedef plain_struct ALIGNED(16) aligned_typedef;
typedef plain_struct ALIGNED(8) aligned_typedef_8;
typedef float floats_2 VECTOR(8);
typedef float floats_4 VECTOR(16);
typedef float floats_8 VECTOR(32);
typedef double doubles_8 VECTOR(64);
typedef char chars_4 VECTOR(4);
struct incomplete;

/* Structures in each other. */
#define INSIDE(type) \
	struct { \
		type a; \
	}
#define INSIDE_2(type)	INSIDE(INSIDE(type))
#define INSIDE_8(type)	INSIDE_2(INSIDE_2(INSIDE_2(INSIDE_2(type))))
#define INSIDE_32(type) INSIDE_8(INSIDE_8(INSIDE_8(INSIDE_8(type))))

#ifdef __clang__
#define BY_COMPILER(gcc, clang) clang
#else
#define BY_COMPILER(gcc, clang) gcc
#endif

/* The type may have commas. */
#define TYPE(name, how, ...) \
	__attribute__((used)) __typeof__(__VA_ARGS__) *pointer_##name;
#include "classify_types.def"
#undef TYPE

static const struct {
	const char *name, *how;
} types[] = {
#define TYPE(name, how, ...) { "pointer_" #name, how },
#include "classify_types.def"
#undef TYPE
};

/* --- debug information of this file --- */

static Dwarf *dwarf;

static void open_itself(void)
{
	int file = open("/proc/self/exe", O_RDONLY);

	cr_assert(ge(int, file, 0));
	dwarf = dwarf_begin(file, DWARF_C_READ);
	cr_assert(ne(ptr, dwarf, NULL));
}

/* The variable or parameter of this name. */
static bool find_die(const char *name, int tag, Dwarf_Die *found)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	uint8_t type;

	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &unit, NULL) == 0) {
		if (dwarf_child(&unit, found) != 0)
			continue;
		do
			if (dwarf_tag(found) == tag && dwarf_diename(found) &&
			    strcmp(dwarf_diename(found), name) == 0)
				return true;
		while (dwarf_siblingof(found, found) == 0);
	}
	return false;
}

static const char *text_of(const struct prototype_value *value)
{
	static const char *const kinds[] = {
		[PROTOTYPE_UNKNOWN] = "unknown",
		[PROTOTYPE_NOTHING] = "nothing",
		[PROTOTYPE_REGISTERS] = "registers",
		[PROTOTYPE_MEMORY] = "memory",
		[PROTOTYPE_X87] = "x87",
		[PROTOTYPE_REFERENCE] = "reference",
	};
	static char text[128];
	int length = snprintf(text, sizeof(text), "%s %u", kinds[value->kind],
			      value->size);

	for (int i = 0; i < 2 && value->classes[i]; i++)
		length += snprintf(text + length, sizeof(text) - (size_t)length,
				   " %c%u", "?IS"[value->classes[i]],
				   value -> used[i]);
	snprintf(text + length, sizeof(text) - (size_t)length, "%s%s%s%s%s%s",
		 value->is_aligned ? " aligned" : "",
		 value->is_whole ? " whole" : "",
		 value->is_split ? " split" : "", value->is_odd ? " odd" : "",
		 value->is_wide ? " wide" : "",
		 value->is_vector ? " vector" : "");
	return text;
}

/* --- tests --- */

/* The pointer has the type as its type, as a variable of the type has. */
static void find_pointer(const char *name, Dwarf_Die *pointer)
{
	Dwarf_Attribute attribute;
	Dwarf_Die variable;

	cr_assert(find_die(name, DW_TAG_variable, &variable), "%s", name);
	cr_assert(
		dwarf_formref_die(dwarf_attr(&variable, DW_AT_type, &attribute),
				  pointer) != NULL);
}

static void check_type(const char *name, const char *how)
{
	struct prototype_value value;
	Dwarf_Attribute attribute;
	Dwarf_Die pointer, type;

	find_pointer(name, &pointer);
	classify_value(&pointer, &value);
	cr_expect(eq(str, (char *)text_of(&value), (char *)how), "%s", name);
	if (!dwarf_formref_die(dwarf_attr(&pointer, DW_AT_type, &attribute),
			       &type) ||
	    !dwarf_haschildren(&type))
		return;
	classify_type(&type, &value);
	cr_expect(eq(str, (char *)text_of(&value), (char *)how), "%s alone",
		  name);
}

Test(classify, each_type_is_passed_by_the_convention)
{
	open_itself();
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		check_type(types[i].name, types[i].how);
}

/* classify_classes.cc */
extern const struct row {
	const char *name, *how;
} classes[];

Test(classify, each_class_is_passed_by_the_convention)
{
	open_itself();
	for (const struct row *row = classes; row->name; row++)
		check_type(row->name, row->how);
}

/* classify_odd.S */
static const struct {
	const char *name, *how;
	bool is_parameter;
} odd[] = {
#define TYPE(name, how)	     { "odd_" #name, how, false },
#define PARAMETER(name, how) { "odd_" #name, how, true },
#include "classify_odd.def"
#undef TYPE
#undef PARAMETER
};

Test(classify, odd_types_are_unknown_or_passed_by_the_convention)
{
	Dwarf_Attribute attribute;
	Dwarf_Die pointer;

	open_itself();
	find_pointer("odd_structure", &pointer);
	cr_assert(
		dwarf_formref_die(dwarf_attr(&pointer, DW_AT_type, &attribute),
				  &definition) != NULL);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct prototype_value value;
		Dwarf_Die die;

		has_definition = strstr(odd[i].name, "defined_elsewhere");

		if (!odd[i].is_parameter) {
			check_type(odd[i].name, odd[i].how);
			continue;
		}
		cr_assert(find_die(odd[i].name, DW_TAG_formal_parameter, &die),
			  "%s", odd[i].name);
		classify_value(&die, &value);
		cr_expect(eq(str, (char *)text_of(&value), (char *)odd[i].how),
			  "%s", odd[i].name);
	}
}
