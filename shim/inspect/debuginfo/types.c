/*
 * Prints names of types and template arguments as C++ writes them, from DIEs.  Each
 * part is appended to one buffer; recursion is limited, because debug information may
 * be damaged.
 */
#include "inspect/debuginfo/types.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Damaged debug information may have cycles. */
#define DEPTH_MAX 32

static void print_type(Dwarf_Die *die, FILE *out, unsigned depth);

static Dwarf_Die *type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(
		dwarf_attr_integrate(die, DW_AT_type, &attribute), type);
}

static bool is_scope(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

/* Finds the scopes of @die, innermost first, including @die itself.  Returns their
 * number. */
static int scopes_of(Dwarf_Die *die, Dwarf_Die **scopes)
{
	int count = dwarf_getscopes_die(die, scopes);

	return count < 0 ? 0 : count;
}

static void print_scopes(Dwarf_Die *die, FILE *out)
{
	Dwarf_Die *scopes = NULL;
	int count = scopes_of(die, &scopes);

	/* The first scope is @die itself. */
	for (int i = count - 1; i > 0; i--) {
		const char *name = dwarf_diename(&scopes[i]);

		if (is_scope(dwarf_tag(&scopes[i])))
			fprintf(out,
				"%s::", name ? name : "(anonymous namespace)");
	}
	free(scopes);
}

/* A pointer to a function or an array has its star inside: `int (*)(char)`. */
static void print_function(Dwarf_Die *die, const char *star, FILE *out,
			   unsigned depth)
{
	const char *between = "";
	Dwarf_Die type, child;

	if (type_of(die, &type))
		print_type(&type, out, depth + 1);
	else
		fputs("void", out);
	fprintf(out, star[0] ? " (%s)(" : " (", star);
	if (dwarf_child(die, &child) == 0) {
		do {
			if (dwarf_tag(&child) == DW_TAG_unspecified_parameters)
				fprintf(out, "%s...", between);
			else if (dwarf_tag(&child) == DW_TAG_formal_parameter &&
				 type_of(&child, &type)) {
				fputs(between, out);
				print_type(&type, out, depth + 1);
			}
			between = ", ";
		} while (dwarf_siblingof(&child, &child) == 0);
	}
	fputc(')', out);
}

static void print_array(Dwarf_Die *die, const char *star, FILE *out,
			unsigned depth)
{
	Dwarf_Die type, child;
	Dwarf_Attribute attribute;
	Dwarf_Word number;

	if (type_of(die, &type))
		print_type(&type, out, depth + 1);
	fprintf(out, star[0] ? " (%s)" : " ", star);
	if (dwarf_child(die, &child) != 0)
		return;
	do {
		if (dwarf_formudata(dwarf_attr(&child, DW_AT_count, &attribute),
				    &number) == 0)
			fprintf(out, "[%" PRIu64 "]", (uint64_t)number);
		else if (dwarf_formudata(dwarf_attr(&child, DW_AT_upper_bound,
						    &attribute),
					 &number) == 0)
			fprintf(out, "[%" PRIu64 "]", (uint64_t)number + 1);
		else
			fputs("[]", out);
	} while (dwarf_siblingof(&child, &child) == 0);
}

/* `T*`, `T&`, `T&&` */
static void print_pointer(Dwarf_Die *die, const char *star, FILE *out,
			  unsigned depth)
{
	Dwarf_Die type;

	if (!type_of(die, &type)) {
		fprintf(out, "void%s", star);
		return;
	}
	if (dwarf_tag(&type) == DW_TAG_subroutine_type) {
		print_function(&type, star, out, depth);
	} else if (dwarf_tag(&type) == DW_TAG_array_type) {
		print_array(&type, star, out, depth);
	} else {
		print_type(&type, out, depth + 1);
		fputs(star, out);
	}
}

static bool is_pointer(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
	       tag == DW_TAG_rvalue_reference_type;
}

/* `const T`, but `T* const` */
static void print_qualified(Dwarf_Die *die, const char *word, FILE *out,
			    unsigned depth)
{
	Dwarf_Die type;

	if (!type_of(die, &type)) {
		fprintf(out, "%s void", word);
	} else if (is_pointer(&type)) {
		print_type(&type, out, depth + 1);
		fprintf(out, " %s", word);
	} else {
		fprintf(out, "%s ", word);
		print_type(&type, out, depth + 1);
	}
}

static void print_type(Dwarf_Die *die, FILE *out, unsigned depth)
{
	const char *name = dwarf_diename(die);

	if (depth > DEPTH_MAX) {
		fputs("...", out);
		return;
	}
	switch (dwarf_tag(die)) {
	case DW_TAG_pointer_type: print_pointer(die, "*", out, depth); return;
	case DW_TAG_reference_type: print_pointer(die, "&", out, depth); return;
	case DW_TAG_rvalue_reference_type:
		print_pointer(die, "&&", out, depth);
		return;
	case DW_TAG_const_type:
		print_qualified(die, "const", out, depth);
		return;
	case DW_TAG_volatile_type:
		print_qualified(die, "volatile", out, depth);
		return;
	case DW_TAG_subroutine_type:
		print_function(die, "", out, depth);
		return;
	case DW_TAG_array_type: print_array(die, "", out, depth); return;
	default: break;
	}
	print_scopes(die, out);
	fputs(name ? name : "?", out);
}

/* --- arguments --- */

static void print_value(Dwarf_Die *die, FILE *out)
{
	Dwarf_Attribute attribute;
	Dwarf_Word encoding = DW_ATE_signed, value = 0;
	Dwarf_Sword number = 0;
	Dwarf_Die type;

	if (type_of(die, &type) && dwarf_peel_type(&type, &type) == 0)
		dwarf_formudata(dwarf_attr(&type, DW_AT_encoding, &attribute),
				&encoding);
	if (!dwarf_attr(die, DW_AT_const_value, &attribute) ||
	    dwarf_formsdata(&attribute, &number) != 0) {
		/* The argument is the address of an object or function. */
		fputc('?', out);
		return;
	}
	switch (encoding) {
	case DW_ATE_boolean: fputs(number ? "true" : "false", out); break;
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
		dwarf_formudata(&attribute, &value);
		fprintf(out, "%" PRIu64, (uint64_t)value);
		break;
	default: fprintf(out, "%" PRId64, (int64_t)number); break;
	}
}

static void print_arguments(Dwarf_Die *parent, FILE *out, unsigned depth)
{
	Dwarf_Attribute attribute;
	Dwarf_Die child, type;
	const char *name;

	if (depth > DEPTH_MAX || dwarf_child(parent, &child) != 0)
		return;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_template_type_parameter:
			if (type_of(&child, &type))
				print_type(&type, out, 0);
			else
				fputs("void", out);
			break;
		case DW_TAG_template_value_parameter:
			print_value(&child, out);
			break;
		case DW_TAG_GNU_template_template_param:
			name = dwarf_formstring(dwarf_attr(
				&child, DW_AT_GNU_template_name, &attribute));
			fputs(name ? name : "?", out);
			break;
		case DW_TAG_GNU_template_parameter_pack:
			print_arguments(&child, out, depth + 1);
			continue;
		default: continue;
		}
		fputc('\0', out);
	} while (dwarf_siblingof(&child, &child) == 0);
}

/* The declaration that @die is a copy or the definition of. */
static bool find_origin(Dwarf_Die *die, Dwarf_Die *origin)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(
		       dwarf_attr(die, DW_AT_abstract_origin, &attribute),
		       origin) ||
	       dwarf_formref_die(
		       dwarf_attr(die, DW_AT_specification, &attribute),
		       origin);
}

static bool has_arguments(Dwarf_Die *die)
{
	Dwarf_Die child;
	int tag;

	if (dwarf_child(die, &child) != 0)
		return false;
	do {
		tag = dwarf_tag(&child);
		if (tag == DW_TAG_template_type_parameter ||
		    tag == DW_TAG_template_value_parameter ||
		    tag == DW_TAG_GNU_template_template_param ||
		    tag == DW_TAG_GNU_template_parameter_pack)
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

void types_print_arguments(Dwarf_Die *unit, Dwarf_Die *function, FILE *out)
{
	Dwarf_Die declaration = *function, origin, definition = *function;
	Dwarf_Die *scopes = NULL;
	int count;

	(void)unit;
	for (unsigned i = 0; i < 4 && find_origin(&declaration, &origin); i++) {
		declaration = origin;
		if (!has_arguments(&definition))
			definition = origin;
	}
	count = scopes_of(&declaration, &scopes);
	for (int i = count - 1; i > 0; i--)
		if (is_scope(dwarf_tag(&scopes[i])))
			print_arguments(&scopes[i], out, 0);
	free(scopes);
	print_arguments(&definition, out, 0);
}
