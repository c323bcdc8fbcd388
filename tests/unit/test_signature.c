/*
 * Definitions of classes that a unit only declares, and the parameters that a function's
 * name lists.  The test is libdw itself: its DIEs are structs.
 */
#include "inspect/debuginfo/signature.c"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* --- the debug information --- */

struct made {
	int tag;
	const char *name;
	struct made *child, *next, *parent;
	bool is_declaration;
	uint64_t size;
};

#define UNITS 3

static struct made units[UNITS] = { { .tag = DW_TAG_compile_unit },
				    { .tag = DW_TAG_compile_unit },
				    { .tag = DW_TAG_compile_unit } };
static int languages[UNITS] = { DW_LANG_C_plus_plus_14, DW_LANG_C_plus_plus_14,
				DW_LANG_C_plus_plus_14 };
static size_t found_count = DEFINITIONS_UNKNOWN;

static Dwarf_Die die_of(struct made *made)
{
	return (Dwarf_Die){ .addr = made };
}

static struct made *made_of(Dwarf_Die *die)
{
	return die->addr;
}

static struct made *add(struct made *parent, struct made *child)
{
	child->parent = parent;
	child->next = parent->child;
	parent->child = child;
	return child;
}

static int found(struct made *made, Dwarf_Die *result)
{
	if (!made)
		return 1;
	*result = die_of(made);
	return 0;
}

int dwarf_child(Dwarf_Die *die, Dwarf_Die *result)
{
	return found(made_of(die)->child, result);
}

int dwarf_siblingof(Dwarf_Die *die, Dwarf_Die *result)
{
	return found(made_of(die)->next, result);
}

int dwarf_tag(Dwarf_Die *die)
{
	return made_of(die)->tag;
}

const char *dwarf_diename(Dwarf_Die *die)
{
	return made_of(die)->name;
}

int dwarf_hasattr(Dwarf_Die *die, unsigned name)
{
	cr_assert(eq(u32, name, DW_AT_declaration));
	return made_of(die)->is_declaration;
}

Dwarf_Off dwarf_dieoffset(Dwarf_Die *die)
{
	(void)die;
	return 1000;
}

Dwarf_Die *dwarf_offdie(Dwarf *dwarf, Dwarf_Off offset, Dwarf_Die *result)
{
	(void)dwarf, (void)offset, (void)result;
	return NULL;
}

Dwarf_Attribute *dwarf_attr(Dwarf_Die *die, unsigned name,
			    Dwarf_Attribute *result)
{
	(void)die, (void)name, (void)result;
	return NULL;
}

int dwarf_formudata(Dwarf_Attribute *attribute, Dwarf_Word *value)
{
	(void)attribute, (void)value;
	return -1;
}

Dwarf *dwarf_cu_getdwarf(Dwarf_CU *cu)
{
	return (Dwarf *)cu;
}

Dwarf_Die *dwarf_diecu(Dwarf_Die *die, Dwarf_Die *result, uint8_t *address_size,
		       uint8_t *offset_size)
{
	struct made *made = made_of(die);

	(void)address_size, (void)offset_size;
	while (made->parent)
		made = made->parent;
	if (made->tag != DW_TAG_compile_unit)
		return NULL;
	*result = die_of(made);
	return result;
}

int dwarf_srclang(Dwarf_Die *die)
{
	return languages[made_of(die) - units];
}

/* Innermost first, and the unit last. */
int dwarf_getscopes_die(Dwarf_Die *die, Dwarf_Die **scopes)
{
	int count = 0;

	*scopes = calloc(40, sizeof(**scopes));
	for (struct made *made = made_of(die); made; made = made->parent)
		(*scopes)[count++] = die_of(made);
	return count;
}

int dwarf_get_units(Dwarf *dwarf, Dwarf_CU *cu, Dwarf_CU **next,
		    Dwarf_Half *version, uint8_t *type, Dwarf_Die *unit,
		    Dwarf_Die *split)
{
	uintptr_t i = (uintptr_t)cu;

	(void)dwarf, (void)version, (void)split;
	if (i == UNITS)
		return 1;
	*next = (Dwarf_CU *)(i + 1);
	*type = DW_UT_compile;
	*unit = die_of(&units[i]);
	return 0;
}

/* --- what else it needs --- */

static struct unit_scope scopes[2];
static size_t scope_count;
static bool is_outermost = true;

size_t unit_namespaces(Dwarf_Die *die, const struct unit_scope **all)
{
	(void)die;
	*all = scopes;
	return scope_count;
}

bool unit_is_outermost(Dwarf_Die *class)
{
	(void)class;
	return is_outermost;
}

bool definitions_is_class(int tag)
{
	return tag == DW_TAG_class_type || tag == DW_TAG_structure_type;
}

size_t definitions_find(Dwarf_Die *unit, const char *name, size_t room,
			Dwarf_Off *offsets)
{
	(void)unit, (void)name, (void)room, (void)offsets;
	return found_count;
}

void definitions_forget(void)
{
}

static void (*on_classify)(void);

void classify_type(Dwarf_Die *die, struct prototype_value *value)
{
	void (*call)(void) = on_classify;

	*value = (struct prototype_value){ .kind = PROTOTYPE_MEMORY };
	value->size = made_of(die)->size;
	on_classify = NULL;
	if (call)
		call();
}

uint8_t prototype_is_optional(Dwarf_Die *function)
{
	(void)function;
	return 7;
}

static struct {
	struct made *type;
	char name[NAME_MAX];
} added[8];
static size_t added_count;

bool typetree_add_type(struct typetree_list *list, Dwarf_Die *type,
		       const char *name)
{
	(void)list;
	added[added_count].type = type ? made_of(type) : NULL;
	strcpy(added[added_count++].name, name);
	return added_count < 8;
}

/* --- definitions --- */

static struct made *class_named(const char *name, uint64_t size)
{
	struct made *class = calloc(1, sizeof(*class));

	class->tag = DW_TAG_class_type;
	class->name = name;
	class->is_declaration = size == 0;
	class->size = size;
	return class;
}

static struct made *definition_of(struct made *declared)
{
	Dwarf_Die die = die_of(declared), defined = { 0 };
	bool is_found = signature_find_definition(&die, &defined);

	cr_assert(eq(int, is_found, defined.addr != NULL));
	return defined.addr;
}

Test(signature, classes_are_defined_in_another_unit)
{
	struct made space[UNITS], *declared, *defined;

	declared = add(&units[0], class_named("outer", 0));
	defined = add(&units[2], class_named("outer", 24));
	cr_expect(eq(ptr, definition_of(declared), defined));
	cr_expect(eq(ptr, definition_of(declared), defined));
	for (unsigned i = 0; i < UNITS; i++) {
		space[i] = (struct made){ .tag = DW_TAG_namespace,
					  .name = "space" };
		add(&units[i], &space[i]);
	}
	scopes[0] = (struct unit_scope){ 0, 2000, die_of(&space[0]) };
	scope_count = 1;
	declared = add(&space[0], class_named("inner", 0));
	defined = add(&space[1], class_named("inner", 8));
	cr_expect(eq(ptr, definition_of(declared), defined));
	is_outermost = false;
	declared = add(declared, class_named("nested", 0));
	defined = add(defined, class_named("nested", 4));
	cr_expect(eq(ptr, definition_of(declared), defined));
}

Test(signature, units_of_other_languages_define_no_classes)
{
	struct made *declared = add(&units[0], class_named("thing", 0));

	add(&units[1], class_named("thing", 24));
	languages[1] = DW_LANG_C99;
	cr_expect(eq(ptr, definition_of(declared), NULL));
	signature_forget();
	languages[1] = DW_LANG_C_plus_plus;
	cr_expect(ne(ptr, definition_of(declared), NULL));
	signature_forget();
	languages[0] = DW_LANG_C99;
	cr_expect(eq(ptr, definition_of(declared), NULL));
}

Test(signature, definitions_that_differ_are_not_used)
{
	struct made *declared = add(&units[0], class_named("thing", 0));
	struct made *first = add(&units[1], class_named("thing", 24));

	add(&units[2], class_named("thing", 24));
	cr_expect(ne(ptr, definition_of(declared), NULL));
	first->size = 16;
	signature_forget();
	cr_expect(eq(ptr, definition_of(declared), NULL));
}

/* What has a name of @size bytes with its NUL, behind @before. */
static struct made *find_named(const char *before, size_t size)
{
	char *name = calloc(1, size);
	struct made *declared, *defined;

	memset(name, 'a' + (int)(size % 26), size - strlen(before) - 1);
	declared = add(scope_count ? made_of(&scopes[0].die) : &units[0],
		       class_named(name, 0));
	defined = add(scope_count ? units[1].child : &units[1],
		      class_named(name, 24));
	cr_assert(eq(sz, strlen(before) + strlen(name) + 1, size));
	return definition_of(declared) == defined ? defined : NULL;
}

Test(signature, names_of_classes_have_less_than_512_bytes)
{
	struct made space[2] = {
		{ .tag = DW_TAG_namespace, .name = "n" },
		{ .tag = DW_TAG_namespace, .name = "n" },
	};

	cr_expect(ne(ptr, find_named("", NAME_MAX), NULL));
	cr_expect(eq(ptr, find_named("", NAME_MAX + 1), NULL));
	cr_expect(eq(ptr, find_named("", NAME_MAX + 2), NULL));
	add(&units[0], &space[0]);
	add(&units[1], &space[1]);
	scopes[0] = (struct unit_scope){ 0, 2000, die_of(&space[0]) };
	scope_count = 1;
	cr_expect(ne(ptr, find_named("n::", NAME_MAX), NULL));
	cr_expect(eq(ptr, find_named("n::", NAME_MAX + 1), NULL));
	cr_expect(eq(ptr, find_named("n::", NAME_MAX + 2), NULL));
}

/* The place in the table comes from the address. */
Test(signature, a_class_without_definition_has_not_that_of_another)
{
	static struct made declared[5000];
	static char names[5000][8];
	struct made *defined;
	unsigned used_again = 0;

	for (unsigned i = 0; i < 5000; i++) {
		sprintf(names[i], "c%u", i);
		declared[i] = (struct made){ .tag = DW_TAG_class_type,
					     .name = names[i],
					     .is_declaration = true,
					     .parent = &units[0] };
		units[1].child = NULL;
		defined = i % 2 ? NULL :
				  add(&units[1], class_named(names[i], 8));
		cr_assert(eq(ptr, definition_of(&declared[i]), defined));
	}
	/* Those that are still in the table have what they had. */
	units[1].child = NULL;
	for (unsigned i = 5000; i-- > 0;) {
		defined = definition_of(&declared[i]);
		used_again += defined != NULL;
		cr_assert(zero(int,
			       defined &&strcmp(defined->name, names[i]) != 0));
	}
	cr_expect(gt(u32, used_again, 100));
}

static struct made *asked_again, other = { .tag = DW_TAG_class_type,
					   .name = "other",
					   .is_declaration = true,
					   .parent = &units[0] };

static void ask_again(void)
{
	cr_expect(eq(ptr, definition_of(asked_again), NULL));
	asked_again = NULL;
}

/* A class may contain itself, by way of another one. */
Test(signature, a_class_that_is_sought_has_no_definition_meanwhile)
{
	asked_again = add(&units[0], class_named("thing", 0));
	add(&units[1], class_named("thing", 24));
	add(&units[2], class_named("thing", 24));
	/* The same place in the table has another class before. */
	for (size_t i = 0; i < 1024; i++)
		definitions[i] = (struct definition){ &other,
						      { .addr = &other } };
	on_classify = ask_again;
	cr_expect(ne(ptr, definition_of(asked_again), NULL));
	cr_expect(eq(ptr, asked_again, NULL));
}

/* --- parameters --- */

static struct made function = { .tag = DW_TAG_subprogram,
				.name = "f",
				.parent = &units[0] };

Test(signature, parameters_are_classified_by_their_names)
{
	static const struct {
		uint8_t kind, size, class;
	} wanted[] = {
		{ PROTOTYPE_REGISTERS, 4, PROTOTYPE_INTEGER },
		{ PROTOTYPE_REGISTERS, 8, PROTOTYPE_INTEGER },
		{ PROTOTYPE_REGISTERS, 8, PROTOTYPE_SSE },
		{ PROTOTYPE_MEMORY, 24, PROTOTYPE_NO_CLASS },
		{ PROTOTYPE_UNKNOWN, 0, PROTOTYPE_NO_CLASS },
		{ PROTOTYPE_X87, 16, PROTOTYPE_NO_CLASS },
		{ PROTOTYPE_REGISTERS, 8, PROTOTYPE_INTEGER },
		{ PROTOTYPE_REGISTERS, 16, PROTOTYPE_INTEGER },
	};
	static const char name[] =
		"int g<int (*)()>(int, char const*, double, thing, "
		"nothing<a, b>, long double, int (*)(int, int), "
		"void (thing::*)(int))";
	struct prototype_value values[9];
	Dwarf_Die die = die_of(&function);

	add(&units[0], class_named("thing", 24));
	cr_assert(eq(sz, signature_read(&die, name, values, 9), 9));
	for (unsigned i = 0; i < 8; i++) {
		cr_expect(eq(u8, values[i + 1].kind, wanted[i].kind), "%u", i);
		cr_expect(eq(u8, values[i + 1].size, wanted[i].size), "%u", i);
		cr_expect(eq(u8, values[i + 1].classes[0], wanted[i].class),
			  "%u", i);
		cr_expect(eq(u8, values[i + 1].is_optional, 7), "%u", i);
	}
	cr_expect(eq(sz, signature_read(&die, name, values, 8), 0));
	cr_expect(eq(sz, signature_read(&die, "f", values, 9), 0));
	cr_expect(eq(sz, signature_read(&die, "f()", values, 9), 1));
	cr_expect(eq(sz, signature_read(&die, "f(int, ...)", values, 9), 2));
}

Test(signature, types_of_parameters_are_those_of_the_unit)
{
	struct made number = { .tag = DW_TAG_base_type, .name = "int" };
	struct made named = { .tag = DW_TAG_variable, .name = "long" };
	struct made *class, *far;
	struct typetree_list list;
	Dwarf_Die die = die_of(&function);

	/* A unit without anything but the function. */
	cr_assert(signature_add(&list, &die, "f(int)"));
	cr_expect(eq(ptr, added[0].type, NULL));
	add(&units[0], &number);
	add(&units[0], &named);
	class = add(&units[0], class_named("thing", 24));
	far = add(&units[1], class_named("far", 24));
	added_count = 0;
	cr_assert(signature_add(&list, &die, "f(int, thing, far, int*, long)"));
	cr_assert(eq(sz, added_count, 5));
	cr_expect(eq(ptr, added[0].type, &number));
	cr_expect(eq(ptr, added[1].type, class));
	cr_expect(eq(ptr, added[2].type, far));
	cr_expect(eq(ptr, added[3].type, NULL));
	cr_expect(eq(ptr, added[4].type, NULL));
	cr_expect(eq(str, added[3].name, "int*"));
}
