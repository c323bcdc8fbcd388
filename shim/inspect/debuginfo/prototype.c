/*
 * Reads the prototypes of functions: how the result and each parameter are passed, and
 * whether the function is called as in the source.
 */
#include "inspect/debuginfo/prototype.h"

#include "inspect/debuginfo/attributes.h"
#include "inspect/debuginfo/bindings.h"
#include "inspect/debuginfo/classify.h"

#include <dwarf.h>
#include <elf.h>
#include <stdbool.h>
#include <string.h>

/* --- the function in the source --- */

/* Whether the language uses the System V calling convention. */
static bool is_known_language(Dwarf_Die *function, bool *is_c)
{
	Dwarf_Die unit;

	if (!dwarf_diecu(function, &unit, NULL, NULL))
		return false;
	switch (dwarf_srclang(&unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11: *is_c = true; return true;
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14: *is_c = false; return true;
	default: return false;
	}
}

/* From DWARF 5 on, only functions without optimization lack the attribute that says
 * that all their calls are described. */
static bool is_optimized(Dwarf_Die *function)
{
	Dwarf_Half version = 0;
	Dwarf_Die unit;

	return !dwarf_cu_die(function->cu, &unit, &version, NULL, NULL, NULL,
			     NULL, NULL) ||
	       version < 5 ||
	       dwarf_hasattr_integrate(function, DW_AT_call_all_calls);
}

/* Finds the function as in the source, because a copy may omit parameters or reorder
 * them. */
Dwarf_Die prototype_written(Dwarf_Die *function)
{
	Dwarf_Die die = *function, origin;
	Dwarf_Attribute attribute;

	for (unsigned i = 0; i < 4; i++) {
		if (!dwarf_formref_die(
			    dwarf_attr(&die, DW_AT_abstract_origin, &attribute),
			    &origin))
			break;
		die = origin;
	}
	return die;
}

uint8_t prototype_is_optional(Dwarf_Die *function)
{
	return is_made_by_clang(function) && is_optimized(function);
}

/* Whether a compiler that has optimized the function may have seen all its callers.  With
 * link-time optimization the attribute is as in the source, but no other object sees the symbol. */
static uint8_t is_local(Dwarf_Die *function, Elf *elf, uint64_t address)
{
	return is_optimized(function) &&
	       (!has_flag(function, DW_AT_external) ||
		bindings_at(elf, address) == 1u << STB_LOCAL);
}

static unsigned count_parameters(Dwarf_Die *function)
{
	unsigned count = 0;
	Dwarf_Die child;

	if (dwarf_child(function, &child) != 0)
		return 0;
	do
		count += dwarf_tag(&child) == DW_TAG_formal_parameter;
	while (dwarf_siblingof(&child, &child) == 0);
	return count;
}

/* Whether @parameter is `this`, which has no name in the declaration in its class. */
static bool is_this(Dwarf_Die *parameter, size_t position)
{
	const char *name = dwarf_diename(parameter);

	return name ? strcmp(name, "this") == 0 ||
			       strcmp(name, "__closure") == 0 :
		      position == 1;
}

bool prototype_is_hidden(Dwarf_Die *parameter, size_t position)
{
	return has_flag(parameter, DW_AT_artificial) &&
	       !is_this(parameter, position);
}

/* Counts parameters that clang adds to constructors of classes with virtual bases,
 * which the declaration lacks. */
static unsigned count_hidden(Dwarf_Die *function)
{
	unsigned count = 0;
	size_t position = 0;
	Dwarf_Die child;

	if (dwarf_child(function, &child) != 0)
		return 0;
	do
		count += dwarf_tag(&child) == DW_TAG_formal_parameter &&
			 prototype_is_hidden(&child, ++position);
	while (dwarf_siblingof(&child, &child) == 0);
	return count;
}

Dwarf_Die prototype_listed(Dwarf_Die *function)
{
	Dwarf_Die written = prototype_written(function), declared;
	Dwarf_Attribute attribute;

	return !prototype_is_optional(function) &&
			       prototype_may_lack(function) &&
			       dwarf_formref_die(dwarf_attr(&written,
							    DW_AT_specification,
							    &attribute),
						 &declared) &&
			       count_hidden(&written) == 0 &&
			       count_parameters(&declared) >
				       count_parameters(&written) ?
		       declared :
		       written;
}

/* --- functions that are not called as in the source --- */

static bool is_same(Dwarf_Die *a, Dwarf_Die *b)
{
	return a->addr == b->addr;
}

static bool is_made_with(Dwarf_Die *function, const char *option)
{
	const char *producer = read_producer(function);

	return producer && strstr(producer, option);
}

#ifdef __x86_64__
#define KNOWS_REGISTERS 1
#else
#define KNOWS_REGISTERS 0
#endif

/* Counts of argument registers in use.  Register numbers below are DWARF's. */
struct registers {
	unsigned integers, vectors;
};

/* The register of the value's first eightbyte; false if the value has no register, or
 * it is unknown. */
static bool take_register(struct registers *taken,
			  const struct prototype_value *value,
			  Dwarf_Word *which)
{
	static const uint8_t integers[] = { 5, 4, 1, 2, 8, 9 };
	struct registers more = { 0, 0 };
	bool is_vector = value->kind == PROTOTYPE_REGISTERS &&
			 value->classes[0] == PROTOTYPE_SSE;

	if (value->kind == PROTOTYPE_REFERENCE)
		more.integers = 1;
	else if (value->kind != PROTOTYPE_REGISTERS)
		return false;
	for (int i = 0; value->kind == PROTOTYPE_REGISTERS && i < 2; i++) {
		more.integers += value->classes[i] == PROTOTYPE_INTEGER;
		more.vectors += value->classes[i] == PROTOTYPE_SSE;
	}
	if (value->is_whole)
		more.vectors = 1;
	if (taken->integers + more.integers > 6 ||
	    taken->vectors + more.vectors > 8)
		return false;
	*which = is_vector ? 17 + taken->vectors : integers[taken->integers];
	taken->integers += more.integers;
	taken->vectors += more.vectors;
	return true;
}

/* The register of @parameter at the entry of its function, by its debug information. A
 * single location from gcc is for the whole function, and may be wrong at the entry. */
static bool read_register(Dwarf_Die *parameter, Dwarf_Addr entry, bool is_clang,
			  Dwarf_Word *which)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *place;
	size_t size;

	if (!dwarf_attr(parameter, DW_AT_location, &attribute) ||
	    (!is_clang && attribute.form == DW_FORM_exprloc) ||
	    dwarf_getlocation_addr(&attribute, entry, &place, &size, 1) != 1 ||
	    size == 0)
		return false;
	if (place[0].atom == DW_OP_regx)
		*which = place[0].number;
	else if (place[0].atom >= DW_OP_reg0 && place[0].atom <= DW_OP_reg31)
		*which = place[0].atom - DW_OP_reg0;
	else
		return false;
	return true;
}

/* Finds the parameter of @function that is a copy of @written, with its locations. */
static bool find_parameter(Dwarf_Die *function, Dwarf_Die *written,
			   Dwarf_Die *parameter)
{
	Dwarf_Attribute attribute;
	Dwarf_Die origin;

	if (dwarf_child(function, parameter) != 0)
		return false;
	do {
		if (dwarf_tag(parameter) != DW_TAG_formal_parameter)
			continue;
		if (is_same(parameter, written))
			return true;
		if (dwarf_formref_die(dwarf_attr(parameter,
						 DW_AT_abstract_origin,
						 &attribute),
				      &origin) &&
		    is_same(&origin, written))
			return true;
	} while (dwarf_siblingof(parameter, parameter) == 0);
	return false;
}

/*
 * A compiler that knows all callers may omit a parameter and pass others in its
 * register. The registers of the described parameters show whether it did.
 */
static bool is_called_as_written(Dwarf_Die *function, Dwarf_Die *written,
				 const struct prototype_value *values,
				 size_t count)
{
	struct registers taken = { values[0].kind == PROTOTYPE_MEMORY ||
					   values[0].kind ==
						   PROTOTYPE_REFERENCE,
				   0 };
	bool is_clang = is_made_by_clang(written);
	Dwarf_Word expected, found;
	Dwarf_Die child, parameter;
	Dwarf_Addr entry;
	size_t n = 1;

	if (dwarf_entrypc(function, &entry) != 0 ||
	    dwarf_child(written, &child) != 0)
		return true;
	do {
		if (dwarf_tag(&child) != DW_TAG_formal_parameter)
			continue;
		if (n < count && values[n].is_vector) {
			taken.vectors =
				8; /* unknown for all later parameters */
			n++;
			continue;
		}
		if (n == count || values[n].kind == PROTOTYPE_UNKNOWN)
			return true;
		if (take_register(&taken, &values[n++], &expected) &&
		    find_parameter(function, &child, &parameter) &&
		    read_register(&parameter, entry, is_clang, &found) &&
		    found != expected)
			return false;
	} while (dwarf_siblingof(&child, &child) == 0);
	return true;
}

/* --- prototypes --- */

static void make_unknown(struct prototype_value *value)
{
	value->kind = PROTOTYPE_UNKNOWN;
	value->is_vector = 0;
}

static size_t read_values(Dwarf_Die *function, Elf *elf, uint64_t address,
			  struct prototype_value *values, size_t room)
{
	Dwarf_Die written = prototype_written(function), child;
	Dwarf_Die listed = prototype_listed(function);
	uint64_t convention = DW_CC_normal;
	bool is_odd = false, is_c = false;
	uint8_t is_optional = prototype_is_optional(function);
	uint8_t local = is_local(function, elf, address);
	size_t count = 1;

	read_number(function, DW_AT_calling_convention, &convention);
	classify_value(&written, &values[0]);
	values[0].may_tail_call = is_made_by_clang(function);
	values[0].is_local = local;
	/* Without a prototype a float is passed as a double. */
	if (!is_known_language(&written, &is_c) ||
	    (is_c && !has_flag(&written, DW_AT_prototyped)) ||
	    is_made_with(&written, "-mlong-double-128"))
		is_odd = true;
	if (is_odd || convention != DW_CC_normal)
		make_unknown(&values[0]);
	if (dwarf_child(&listed, &child) != 0)
		return count;
	do {
		if (dwarf_tag(&child) != DW_TAG_formal_parameter)
			continue;
		if (count == room)
			return 0;
		classify_value(&child, &values[count]);
		values[count].is_optional = is_optional;
		values[count].is_local = local;
		values[count].is_optimized = is_optimized(function);
		/* Some copies of constructors of classes with virtual bases lack
		 * their hidden parameters. */
		if (has_flag(&child, DW_AT_artificial)) {
			values[count].is_this = is_this(&child, count);
			values[count].is_hidden = !values[count].is_this;
			is_odd |= values[count].is_hidden;
		}
		if (is_odd || convention != DW_CC_normal)
			make_unknown(&values[count]);
		count++;
	} while (dwarf_siblingof(&child, &child) == 0);
	return count;
}

size_t prototype_read(Dwarf_Die *function, Elf *elf, uint64_t address,
		      struct prototype_value *values, size_t room)
{
	Dwarf_Die listed = prototype_listed(function);
	size_t count = read_values(function, elf, address, values, room);

	if (KNOWS_REGISTERS &&
	    !is_called_as_written(function, &listed, values, count))
		for (size_t i = 0; i < count; i++)
			make_unknown(&values[i]);
	return count;
}

bool prototype_may_lack(Dwarf_Die *function)
{
	bool is_c = false;

	return is_known_language(function, &is_c) && !is_c &&
	       is_made_by_clang(function);
}

/* The number of parameters in the last pair of parentheses; -1 if there is no such
 * pair. */
static int count_in_name(const char *name)
{
	const char *end = strrchr(name, ')'), *at;
	int depth = 0, count = 1;

	for (at = end; at && at >= name; at--) {
		if (strchr(")>]}", *at) && *at)
			depth++;
		else if (strchr("(<[{", *at) && *at && --depth == 0)
			break;
		else if (*at == ',' && depth == 1)
			count++;
	}
	if (!at || at < name)
		return -1;
	if (end - at >= 4 && strncmp(end - 3, "...", 3) == 0)
		count--;
	return at + 1 == end ? 0 : count;
}

bool prototype_is_complete(const char *name,
			   const struct prototype_value *values, size_t count)
{
	int declared = 0;

	for (size_t i = 1; i < count; i++)
		declared += !values[i].is_hidden && !values[i].is_this;
	return count_in_name(name) == declared;
}
