/*
 * Reads parameters from a function's name.  clang's debug information omits unused
 * objects that are passed by reference, but the name in the source has the types of all
 * parameters.  A type without a definition for its name is PROTOTYPE_UNKNOWN.
 */
#include "inspect/debuginfo/signature.h"

#include "inspect/debuginfo/definitions.h"
#include "inspect/debuginfo/classify.h"
#include "inspect/debuginfo/prototype.h"
#include "inspect/debuginfo/unit.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX  32
#define NAME_MAX   512
#define PLACES_MAX 16

/* --- the list --- */

/* The unread rest of the list of parameters. */
struct rest {
	const char *at, *end;
};

static bool opens(char c)
{
	return c == '(' || c == '<' || c == '[' || c == '{';
}

static bool closes(char c)
{
	return c == ')' || c == '>' || c == ']' || c == '}';
}

/* Whether @list belongs to the result type.  The list of parameters is the last pair of
 * parentheses.  The name of a template's instance begins with its result type, which
 * may contain such a pair. */
static bool is_of_result(const char *plain, const char *list)
{
	static const char call[] = "operator()";
	size_t length = (size_t)(list - 1 - plain);

	return length > 0 && list[-2] == ')' &&
	       (length < sizeof(call) - 1 ||
		strncmp(list - sizeof(call), call, sizeof(call) - 1) != 0);
}

static bool find_list(const char *plain, struct rest *list)
{
	int depth = 0;

	list->end = strrchr(plain, ')');
	for (list->at = list->end; list->at && list->at >= plain; list->at--) {
		if (closes(*list->at))
			depth++;
		else if (opens(*list->at) && --depth == 0) {
			list->at++;
			return !is_of_result(plain, list->at);
		}
	}
	return false;
}

static bool has_next(struct rest *list)
{
	while (list->at < list->end && *list->at == ' ')
		list->at++;
	return list->at < list->end && strncmp(list->at, "...", 3) != 0;
}

/* Copies one type; false if it is too long. */
static bool copy_type(struct rest *list, char *name)
{
	size_t size = 0;
	int depth = 0;

	for (; list->at < list->end && (depth > 0 || *list->at != ',');
	     list->at++) {
		depth += opens(*list->at) - closes(*list->at);
		if (size + 1 == NAME_MAX)
			return false;
		name[size++] = *list->at;
	}
	name[size] = '\0';
	list->at += list->at < list->end;
	return true;
}

/* --- types --- */

static const struct {
	const char *name;
	uint8_t size;
	uint8_t class;
} numbers[] = {
	{ "bool", 1, PROTOTYPE_INTEGER },
	{ "char", 1, PROTOTYPE_INTEGER },
	{ "signed char", 1, PROTOTYPE_INTEGER },
	{ "unsigned char", 1, PROTOTYPE_INTEGER },
	{ "short", 2, PROTOTYPE_INTEGER },
	{ "unsigned short", 2, PROTOTYPE_INTEGER },
	{ "int", 4, PROTOTYPE_INTEGER },
	{ "unsigned int", 4, PROTOTYPE_INTEGER },
	{ "long", 8, PROTOTYPE_INTEGER },
	{ "unsigned long", 8, PROTOTYPE_INTEGER },
	{ "long long", 8, PROTOTYPE_INTEGER },
	{ "unsigned long long", 8, PROTOTYPE_INTEGER },
	{ "char8_t", 1, PROTOTYPE_INTEGER },
	{ "wchar_t", 4, PROTOTYPE_INTEGER },
	{ "char16_t", 2, PROTOTYPE_INTEGER },
	{ "char32_t", 4, PROTOTYPE_INTEGER },
	{ "float", 4, PROTOTYPE_SSE },
	{ "double", 8, PROTOTYPE_SSE },
};

static bool read_number(const char *name, struct prototype_value *value)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(numbers[i].name, name) != 0)
			continue;
		value->kind = PROTOTYPE_REGISTERS;
		value->size = numbers[i].size;
		value->classes[0] = numbers[i].class;
		return true;
	}
	if (strcmp(name, "long double") != 0)
		return false;
	value->kind = PROTOTYPE_X87;
	value->size = 16;
	value->is_aligned = 1;
	return true;
}

/* Searches @name outside of template arguments. */
static bool contains_outside(const char *name, const char *wanted)
{
	int depth = 0;

	for (; *name; name++) {
		depth += (*name == '<') - (*name == '>');
		if (depth == 0 && strncmp(name, wanted, strlen(wanted)) == 0)
			return true;
	}
	return false;
}

/* Pointers, references and pointers to members. */
static bool read_pointer(const char *name, struct prototype_value *value)
{
	size_t length = strlen(name);
	char last = length > 0 ? name[length - 1] : '\0';
	bool is_method = contains_outside(name, "::*)(");

	if (!is_method && !contains_outside(name, "(*)(") &&
	    !contains_outside(name, "(&)(") && last != '*' && last != '&')
		return false;
	value->kind = PROTOTYPE_REGISTERS;
	value->size = is_method ? 16 : 8;
	value->classes[0] = PROTOTYPE_INTEGER;
	value->classes[1] = is_method ? PROTOTYPE_INTEGER : PROTOTYPE_NO_CLASS;
	return true;
}

/* Returns the rest of @name after the name of @die; NULL if @name does not begin with
 * that name. */
static const char *rest_after(Dwarf_Die *die, const char *name)
{
	const char *own_name = dwarf_diename(die);
	size_t length;

	if (!own_name && dwarf_tag(die) == DW_TAG_namespace)
		own_name = "(anonymous namespace)";
	length = own_name ? strlen(own_name) : 0;
	return own_name && strncmp(name, own_name, length) == 0 ?
		       name + length :
		       NULL;
}

/* Finds the definition of the type. */
static bool find_type(Dwarf_Die *parent, const char *name, unsigned depth,
		      Dwarf_Die *found)
{
	const char *rest;
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return false;
	do {
		int tag = dwarf_tag(&die);

		if (tag != DW_TAG_namespace && !definitions_is_class(tag))
			continue;
		rest = rest_after(&die, name);
		if (rest && *rest == '\0' && definitions_is_class(tag) &&
		    !dwarf_hasattr(&die, DW_AT_declaration)) {
			*found = die;
			return true;
		}
		if (rest && strncmp(rest, "::", 2) == 0 &&
		    find_type(&die, rest + 2, depth + 1, found))
			return true;
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/* The name for find_type of a class that is outermost or in namespaces. */
static bool name_outermost(Dwarf_Die *class, char *name)
{
	Dwarf_Off offset = dwarf_dieoffset(class);
	const char *own_name = dwarf_diename(class);
	const struct unit_scope *scopes;
	size_t count = unit_namespaces(class, &scopes), length = 0;

	for (size_t i = 0; i < count && scopes[i].start < offset; i++) {
		Dwarf_Die die = scopes[i].die;
		const char *space = dwarf_diename(&die);

		if (scopes[i].end <= offset)
			continue;
		if (!space || length + strlen(space) + 3 > NAME_MAX)
			return false;
		length += (size_t)sprintf(name + length, "%s::", space);
	}
	if (!own_name || length + strlen(own_name) + 1 > NAME_MAX)
		return false;
	strcpy(name + length, own_name);
	return true;
}

/* The name of any class; false if the class is local to a file or a function. */
static bool name_class(Dwarf_Die *class, char *name)
{
	Dwarf_Die *scopes = NULL;
	int count = dwarf_getscopes_die(class, &scopes);
	size_t length = 0;
	bool is_global = count > 1;

	/* The last scope is the unit. */
	for (int i = count - 2; i >= 0 && is_global; i--) {
		const char *own_name = dwarf_diename(&scopes[i]);
		int tag = dwarf_tag(&scopes[i]);

		if (!own_name ||
		    (tag != DW_TAG_namespace && !definitions_is_class(tag)) ||
		    length + strlen(own_name) + 3 > NAME_MAX)
			is_global = false;
		else
			length += (size_t)sprintf(name + length, "%s%s",
						  length ? "::" : "", own_name);
	}
	free(scopes);
	return is_global;
}

static bool is_cxx(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14: return true;
	default: return false;
	}
}

/* Whether both are passed in the same way. */
static bool is_passed_alike(Dwarf_Die *a, Dwarf_Die *b)
{
	struct prototype_value first, second;

	classify_type(a, &first);
	classify_type(b, &second);
	return memcmp(&first, &second, sizeof(first)) == 0;
}

static bool has_same_number(Dwarf_Die *a, Dwarf_Die *b, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word first = 0, second = 0;

	dwarf_formudata(dwarf_attr(a, name, &attribute), &first);
	dwarf_formudata(dwarf_attr(b, name, &attribute), &second);
	return first == second;
}

/* Whether @die is another definition of @found.  Other bytes that look like a DIE have
 * another size and line. */
static bool is_same_class(Dwarf_Die *found, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die), *own_name = dwarf_diename(found);

	return dwarf_tag(die) == dwarf_tag(found) && name && own_name &&
	       strcmp(name, own_name) == 0 &&
	       has_same_number(found, die, DW_AT_byte_size) &&
	       has_same_number(found, die, DW_AT_decl_line) &&
	       is_passed_alike(found, die);
}

/* Whether all definitions at @offsets are like @found, so that shim need not read the
 * unit. */
static bool are_all_alike(Dwarf *dwarf, Dwarf_Die *found,
			  const Dwarf_Off *offsets, size_t count)
{
	Dwarf_Die die;

	for (size_t i = 0; i < count; i++)
		if (!dwarf_offdie(dwarf, offsets[i], &die) ||
		    !is_same_class(found, &die))
			return false;
	return true;
}

/* A program has one definition.  If two definitions differ, neither is used. */
static bool find_everywhere(Dwarf *dwarf, const char *name, Dwarf_Die *found)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit, die;
	Dwarf_Off offsets[PLACES_MAX];
	bool is_found = false;
	size_t count;
	uint8_t type;

	if (strstr(name, "(anonymous"))
		return false;
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &unit, NULL) == 0) {
		if (type != DW_UT_compile || !is_cxx(&unit))
			continue;
		count = definitions_find(&unit, name, PLACES_MAX, offsets);
		if (count == 0 ||
		    (is_found && count != DEFINITIONS_UNKNOWN &&
		     are_all_alike(dwarf, found, offsets, count)) ||
		    !find_type(&unit, name, 0, &die))
			continue;
		if (is_found && !is_passed_alike(found, &die))
			return false;
		*found = die;
		is_found = true;
	}
	return is_found;
}

/* Keeps found definitions by their declarations, because a search takes
 * milliseconds. */
static struct definition {
	const void *declared; /* NULL: none */
	Dwarf_Die defined;    /* address NULL: not found */
} definitions[1024];

void signature_forget(void)
{
	memset(definitions, 0, sizeof(definitions));
	definitions_forget();
}

static void set_definition(Dwarf_Die *declared, struct definition *definition)
{
	char name[NAME_MAX];
	Dwarf_Die unit, defined;

	/* A nested search for the same class finds nothing. */
	definition->declared = declared->addr;
	definition->defined.addr = NULL;
	if (dwarf_diecu(declared, &unit, NULL, NULL) && is_cxx(&unit) &&
	    (unit_is_outermost(declared) ? name_outermost(declared, name) :
					   name_class(declared, name)) &&
	    find_everywhere(dwarf_cu_getdwarf(declared->cu), name, &defined)) {
		definition->declared = declared->addr;
		definition->defined = defined;
	}
}

bool signature_find_definition(Dwarf_Die *declared, Dwarf_Die *defined)
{
	size_t i = (uintptr_t)declared->addr * 0x9e3779b97f4a7c15ull >> 54;

	if (definitions[i].declared != declared->addr)
		set_definition(declared, &definitions[i]);
	*defined = definitions[i].defined;
	return defined->addr;
}

static bool find_by_name(Dwarf_Die *unit, const char *name, Dwarf_Die *found)
{
	return find_type(unit, name, 0, found) ||
	       find_everywhere(dwarf_cu_getdwarf(unit->cu), name, found);
}

static bool find_number(Dwarf_Die *unit, const char *name, Dwarf_Die *found)
{
	if (dwarf_child(unit, found) != 0)
		return false;
	do {
		const char *own_name = dwarf_tag(found) == DW_TAG_base_type ?
					       dwarf_diename(found) :
					       NULL;

		if (own_name && strcmp(own_name, name) == 0)
			return true;
	} while (dwarf_siblingof(found, found) == 0);
	return false;
}

static void read_type(Dwarf_Die *unit, const char *name,
		      struct prototype_value *value)
{
	Dwarf_Die die;

	if (!read_number(name, value) && !read_pointer(name, value) &&
	    find_by_name(unit, name, &die))
		classify_type(&die, value);
}

size_t signature_read(Dwarf_Die *function, const char *plain,
		      struct prototype_value *values, size_t room)
{
	uint8_t is_optional = prototype_is_optional(function);
	size_t count = 1;
	char name[NAME_MAX];
	struct rest list;
	Dwarf_Die unit;

	if (!find_list(plain, &list) ||
	    !dwarf_diecu(function, &unit, NULL, NULL))
		return 0;
	for (; has_next(&list); count++) {
		if (count == room || !copy_type(&list, name))
			return 0;
		memset(&values[count], 0, sizeof(values[count]));
		read_type(&unit, name, &values[count]);
		values[count].is_optional = is_optional;
	}
	return count;
}

bool signature_add(struct typetree_list *list, Dwarf_Die *function,
		   const char *plain)
{
	struct prototype_value value = { .kind = PROTOTYPE_UNKNOWN };
	char name[NAME_MAX];
	Dwarf_Die unit, die;
	struct rest rest;
	bool is_found;

	if (!find_list(plain, &rest) ||
	    !dwarf_diecu(function, &unit, NULL, NULL))
		return false;
	while (has_next(&rest) && copy_type(&rest, name)) {
		is_found = !read_pointer(name, &value) &&
			   (find_number(&unit, name, &die) ||
			    find_by_name(&unit, name, &die));
		if (!typetree_add_type(list, is_found ? &die : NULL, name))
			return false;
	}
	return true;
}
