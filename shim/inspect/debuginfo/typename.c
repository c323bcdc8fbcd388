/*
 * Prints names of types.  A C declarator is built from the inside: each type passes the
 * parts around the missing name, such as `*`, `[3]` and `(int)`, to the type that it
 * refers to.
 */
#define _GNU_SOURCE
#include "inspect/debuginfo/typename.h"

#include "inspect/debuginfo/attributes.h"

#include "inspect/debuginfo/unit.h"

#include <ctype.h>
#include <dwarf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX      32 /* damaged debug information may have cycles */
#define DECLARATOR_MAX 512
#define ELISION	       "..."

/* --- scopes of a type --- */

/* Whether the source may omit the name of the namespace. */
static bool is_version(const char *name)
{
	return name && (strcmp(name, "__cxx11") == 0 ||
			strcmp(name, "__1") == 0 || strcmp(name, "__8") == 0);
}

static void print_scopes(Dwarf_Die *die, FILE *out)
{
	Dwarf_Off offset = dwarf_dieoffset(die);
	const struct unit_scope *scopes;
	size_t count = unit_scopes(die, &scopes);

	for (size_t i = 0; i < count; i++) {
		Dwarf_Die scope = scopes[i].die;
		const char *name;

		if (scopes[i].start >= offset)
			break;
		if (offset >= scopes[i].end)
			continue;
		name = dwarf_diename(&scope);
		if (!is_version(name))
			fprintf(out,
				"%s::", name ? name : "(anonymous namespace)");
	}
}

bool typename_is_standard(Dwarf_Die *die)
{
	Dwarf_Off offset = dwarf_dieoffset(die);
	const struct unit_scope *scopes;
	size_t count = unit_scopes(die, &scopes);
	bool is = false;

	for (size_t i = 0; i < count; i++) {
		Dwarf_Die scope = scopes[i].die;
		const char *name;

		if (scopes[i].start >= offset)
			break;
		if (offset >= scopes[i].end)
			continue;
		name = dwarf_diename(&scope);
		if (is_version(name))
			continue;
		if (is || !name || strcmp(name, "std") != 0)
			return false;
		is = true;
	}
	return is;
}

/* --- names that compilers make long --- */

/* Whether the argument at @at belongs to a template of the standard library. */
static bool is_in_standard(const char *name, const char *at)
{
	int depth = 0;

	for (; at > name; at--) {
		if (at[-1] == '>')
			depth++;
		else if (at[-1] == '<' && depth-- == 0)
			break;
	}
	if (at == name)
		return false;
	for (at--; at > name && (isalnum((unsigned char)at[-1]) ||
				 at[-1] == '_' || at[-1] == ':');)
		at--;
	return strncmp(at, "std::", 5) == 0;
}

static char *end_of_argument(char *at)
{
	int depth = 0;

	for (; *at; at++) {
		if (*at == '<')
			depth++;
		else if (depth == 0 && (*at == ',' || *at == '>'))
			break;
		else if (*at == '>')
			depth--;
	}
	return at;
}

/* Removes default arguments of the library's templates, which a source omits. */
static void drop_arguments(char *name)
{
	static const char *const defaults[] = {
		", std::allocator<", ", std::char_traits<",
		", std::less<",	     ", std::default_delete<",
		", std::hash<",	     ", std::equal_to<",
	};

	for (size_t i = 0; i < sizeof(defaults) / sizeof(*defaults); i++) {
		char *at = name, *end;

		while ((at = strstr(at, defaults[i])) != NULL) {
			if (!is_in_standard(name, at)) {
				at++;
				continue;
			}
			end = end_of_argument(at + 2);
			/* Also removes the space of `> >`. */
			memmove(at, end, strlen(end) + 1);
		}
	}
}

static void replace(char *name, const char *long_one, const char *short_one)
{
	size_t was = strlen(long_one), is = strlen(short_one);

	for (char *at = name; (at = strstr(at, long_one)) != NULL; at += is) {
		memcpy(at, short_one, is);
		memmove(at + is, at + was, strlen(at + was) + 1);
	}
}

static void shorten_name(char *name)
{
	replace(name, "std::__cxx11::", "std::");
	replace(name, "std::__1::", "std::");
	replace(name, " >", ">");
	drop_arguments(name);
	replace(name, "std::basic_string<char>", "std::string");
	replace(name, "std::basic_string_view<char>", "std::string_view");
}

/* --- declarators --- */

static bool is_c(Dwarf_Die *die)
{
	Dwarf_Die unit;

	if (!dwarf_diecu(die, &unit, NULL, NULL))
		return false;
	switch (dwarf_srclang(&unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11: return true;
	default: return false;
	}
}

/* "struct " in C, and for types without a name. */
static const char *keyword(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_structure_type: return "struct ";
	case DW_TAG_class_type: return "class ";
	case DW_TAG_union_type: return "union ";
	case DW_TAG_enumeration_type: return "enum ";
	default: return "";
	}
}

static void print_named(Dwarf_Die *die, FILE *out)
{
	const char *name = dwarf_diename(die);
	char *copy;

	if (!name) {
		fprintf(out, "%s{...}", keyword(die));
		return;
	}
	if (is_c(die)) {
		fprintf(out, "%s%s", keyword(die), name);
		return;
	}
	copy = strdup(name);
	print_scopes(die, out);
	fputs(copy ? copy : name, out);
	free(copy);
}

static void print_type(Dwarf_Die *die, const char *declarator, FILE *out,
		       unsigned depth);

static void print_target(Dwarf_Die *die, const char *declarator, FILE *out,
			 unsigned depth)
{
	Dwarf_Die type;

	print_type(read_type(die, &type) ? &type : NULL, declarator, out,
		   depth + 1);
}

static void print_pointer(Dwarf_Die *die, const char *sign,
			  const char *declarator, FILE *out, unsigned depth)
{
	char outer[DECLARATOR_MAX];
	Dwarf_Die type;
	int tag = read_type(die, &type) ? dwarf_tag(&type) : 0;
	bool is_inner = tag == DW_TAG_subroutine_type ||
			tag == DW_TAG_array_type;

	snprintf(outer, sizeof(outer), is_inner ? "(%s%s)" : "%s%s", sign,
		 declarator);
	print_target(die, outer, out, depth);
}

static bool is_pointer(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
	       tag == DW_TAG_rvalue_reference_type ||
	       tag == DW_TAG_ptr_to_member_type;
}

/* `const T`, but `T *const` */
static void print_qualified(Dwarf_Die *die, const char *word,
			    const char *declarator, FILE *out, unsigned depth)
{
	char outer[DECLARATOR_MAX];
	Dwarf_Die type;

	if (read_type(die, &type) && is_pointer(&type)) {
		snprintf(outer, sizeof(outer), "%s%s%s", word,
			 declarator[0] && declarator[0] != '[' ? " " : "",
			 declarator);
		print_type(&type, outer, out, depth + 1);
		return;
	}
	fprintf(out, "%s ", word);
	print_target(die, declarator, out, depth);
}

static void add_dimension(Dwarf_Die *die, char *outer, size_t size)
{
	size_t length = strlen(outer);
	Dwarf_Attribute attribute;
	Dwarf_Word number;

	if (dwarf_formudata(dwarf_attr(die, DW_AT_count, &attribute),
			    &number) == 0)
		snprintf(outer + length, size - length, "[%" PRIu64 "]",
			 (uint64_t)number);
	else if (dwarf_formudata(dwarf_attr(die, DW_AT_upper_bound, &attribute),
				 &number) == 0)
		snprintf(outer + length, size - length, "[%" PRIu64 "]",
			 (uint64_t)number + 1);
	else
		snprintf(outer + length, size - length, "[]");
}

static void print_array(Dwarf_Die *die, const char *declarator, FILE *out,
			unsigned depth)
{
	char outer[DECLARATOR_MAX];
	Dwarf_Die child;

	snprintf(outer, sizeof(outer), "%s", declarator);
	if (dwarf_child(die, &child) == 0) {
		do {
			if (dwarf_tag(&child) == DW_TAG_subrange_type)
				add_dimension(&child, outer, sizeof(outer));
		} while (dwarf_siblingof(&child, &child) == 0);
	}
	print_target(die, outer, out, depth);
}

static void print_parameters(Dwarf_Die *die, FILE *out, unsigned depth)
{
	const char *between = "";
	Dwarf_Die child, type;

	if (dwarf_child(die, &child) != 0)
		return;
	do {
		if (dwarf_tag(&child) == DW_TAG_unspecified_parameters) {
			fprintf(out, "%s...", between);
		} else if (dwarf_tag(&child) == DW_TAG_formal_parameter &&
			   read_type(&child, &type)) {
			fputs(between, out);
			print_type(&type, "", out, depth + 1);
		}
		between = ", ";
	} while (dwarf_siblingof(&child, &child) == 0);
}

static void print_function(Dwarf_Die *die, const char *declarator, FILE *out,
			   unsigned depth)
{
	char outer[DECLARATOR_MAX];
	char *parameters = NULL;
	size_t size = 0;
	FILE *inner = open_memstream(&parameters, &size);

	if (inner) {
		print_parameters(die, inner, depth);
		if (ftell(inner) == 0 && is_c(die) &&
		    dwarf_hasattr(die, DW_AT_prototyped))
			fputs("void", inner);
		fclose(inner);
	}
	snprintf(outer, sizeof(outer), "%s(%s)", declarator,
		 parameters ? parameters : "");
	free(parameters);
	print_target(die, outer, out, depth);
}

static void print_member_pointer(Dwarf_Die *die, const char *declarator,
				 FILE *out, unsigned depth)
{
	char sign[DECLARATOR_MAX / 2];
	Dwarf_Attribute attribute;
	Dwarf_Die class;
	const char *name = NULL;

	if (dwarf_formref_die(
		    dwarf_attr(die, DW_AT_containing_type, &attribute), &class))
		name = dwarf_diename(&class);
	snprintf(sign, sizeof(sign), "%s::*", name ? name : "?");
	print_pointer(die, sign, declarator, out, depth);
}

static void print_type(Dwarf_Die *die, const char *declarator, FILE *out,
		       unsigned depth)
{
	if (depth > DEPTH_MAX || strlen(declarator) > DECLARATOR_MAX / 2) {
		fputs(ELISION, out);
		return;
	}
	switch (die ? dwarf_tag(die) : 0) {
	case DW_TAG_pointer_type:
		print_pointer(die, "*", declarator, out, depth);
		return;
	case DW_TAG_reference_type:
		print_pointer(die, "&", declarator, out, depth);
		return;
	case DW_TAG_rvalue_reference_type:
		print_pointer(die, "&&", declarator, out, depth);
		return;
	case DW_TAG_ptr_to_member_type:
		print_member_pointer(die, declarator, out, depth);
		return;
	case DW_TAG_const_type:
		print_qualified(die, "const", declarator, out, depth);
		return;
	case DW_TAG_volatile_type:
		print_qualified(die, "volatile", declarator, out, depth);
		return;
	case DW_TAG_restrict_type:
		print_qualified(die, "restrict", declarator, out, depth);
		return;
	case DW_TAG_atomic_type:
		print_qualified(die, "_Atomic", declarator, out, depth);
		return;
	case DW_TAG_array_type:
		print_array(die, declarator, out, depth);
		return;
	case DW_TAG_subroutine_type:
		print_function(die, declarator, out, depth);
		return;
	case 0: fputs("void", out); break;
	default: print_named(die, out);
	}
	if (declarator[0])
		fprintf(out, " %s", declarator);
}

void typename_print(Dwarf_Die *type, FILE *out)
{
	char *name = NULL;
	size_t size = 0;
	FILE *inner = open_memstream(&name, &size);

	if (!inner)
		return;
	print_type(type, "", inner, 0);
	if (fclose(inner) == 0) {
		shorten_name(name);
		fputs(name, out);
	}
	free(name);
}
