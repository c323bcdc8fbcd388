/*
 * Classifies types by the System V calling convention for x86-64: each eightbyte of a
 * value has a class, and a C++ class that is not trivial is passed by reference.
 * Unsupported types are PROTOTYPE_UNKNOWN.
 */
#include "inspect/debuginfo/classify.h"

#include "inspect/debuginfo/attributes.h"
#include "inspect/debuginfo/signature.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX    32
#define ELEMENTS_MAX 16 /* of an array that may be in registers */
#define STEPS_MAX    4096

enum eightbyte { NONE, INTEGER, SSE, X87, X87UP };

/* The classification of a type. */
struct type {
	uint64_t size;
	uint64_t alignment;
	enum eightbyte classes[2];
	uint8_t used[2]; /* bytes of each up to the end of its last member */
	bool is_unknown;
	bool in_memory;	   /* because of a field that is not aligned */
	bool by_reference; /* not trivial for the purposes of calls */
	bool is_whole;
	bool is_wide, is_vector;
	/* Number of types visited; damaged types may contain themselves. */
	unsigned steps;
};

static void classify(Dwarf_Die *die, uint64_t offset, struct type *type,
		     unsigned depth);

/* --- reading --- */

/* Removes qualifiers and typedefs; *@alignment receives an alignment that a typedef
 * requires.  A class may be in a type unit. */
static bool peel(Dwarf_Die *die, uint64_t *alignment)
{
	Dwarf_Attribute attribute;
	Dwarf_Die whole;

	for (unsigned i = 0; i < DEPTH_MAX; i++) {
		if (dwarf_attr(die, DW_AT_signature, &attribute)) {
			if (!dwarf_formref_die(&attribute, &whole))
				return false;
			*die = whole;
			return true;
		}
		switch (dwarf_tag(die)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type: break;
		default: return true;
		}
		read_number(die, DW_AT_alignment, alignment);
		if (!dwarf_formref_die(
			    dwarf_attr_integrate(die, DW_AT_type, &attribute),
			    die))
			return false;
	}
	return false;
}

/* The type of @die, peeled; false if it is void or damaged. */
static bool type_of(Dwarf_Die *die, Dwarf_Die *type, uint64_t *alignment)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(
		       dwarf_attr_integrate(die, DW_AT_type, &attribute),
		       type) &&
	       peel(type, alignment);
}

/* --- classes of C++ --- */

/* Whether @die, a parameter, is a reference to @class. */
static bool refers_to(Dwarf_Die *die, Dwarf_Die *class, bool *is_rvalue)
{
	uint64_t alignment = 0;
	Dwarf_Die type, target;

	if (!type_of(die, &type, &alignment))
		return false;
	*is_rvalue = dwarf_tag(&type) == DW_TAG_rvalue_reference_type;
	return (*is_rvalue || dwarf_tag(&type) == DW_TAG_reference_type) &&
	       type_of(&type, &target, &alignment) &&
	       target.addr == class->addr;
}

/* Finds the first declared parameter, and returns the number of parameters; 0 for an
 * instance of a template, which is no copy constructor. */
static unsigned first_declared(Dwarf_Die *function, Dwarf_Die *first)
{
	unsigned count = 0;
	Dwarf_Die child;

	if (dwarf_child(function, &child) != 0)
		return 0;
	do {
		if (dwarf_tag(&child) == DW_TAG_template_type_parameter ||
		    dwarf_tag(&child) == DW_TAG_template_value_parameter)
			return 0;
		if (dwarf_tag(&child) != DW_TAG_formal_parameter ||
		    has_flag(&child, DW_AT_artificial))
			continue;
		if (count++ == 0)
			*first = child;
	} while (dwarf_siblingof(&child, &child) == 0);
	return count;
}

/* The constructors and destructor of a class, as far as they affect copies of its
 * objects. */
struct copying {
	bool by_reference, is_unknown;
	bool is_declared;  /* has a constructor that copies or moves */
	bool is_possible;  /* and one that is not deleted */
	bool assigns_move; /* which deletes implicit copy constructors */
};

/* Whether the program defines the function.  A function that the compiler defines is
 * trivial if it is trivial for all fields. */
static bool is_provided(Dwarf_Die *function)
{
	uint64_t defaulted = DW_DEFAULTED_no;

	read_number(function, DW_AT_defaulted, &defaulted);
	return defaulted != DW_DEFAULTED_in_class &&
	       !has_flag(function, DW_AT_artificial);
}

static void note_function(Dwarf_Die *class, const char *base, size_t base_size,
			  Dwarf_Die *function, struct copying *copying)
{
	const char *name = dwarf_diename(function);
	bool is_rvalue = false;
	uint64_t number;
	Dwarf_Die first;
	unsigned count;

	if (read_number(function, DW_AT_virtuality, &number) && number != 0)
		copying->by_reference = true;
	if (!name)
		return;
	if (name[0] == '~') {
		if (has_flag(function, DW_AT_deleted) || is_provided(function))
			copying->by_reference = true;
		return;
	}
	count = first_declared(function, &first);
	if (count == 0 || !refers_to(&first, class, &is_rvalue))
		return;
	if (strcmp(name, "operator=") == 0) {
		copying->assigns_move |= is_rvalue;
		return;
	}
	if (strncmp(name, base, base_size) != 0 ||
	    (name[base_size] != '\0' && name[base_size] != '<'))
		return;
	/* The other parameters of a constructor may have default arguments. */
	if (count > 1) {
		copying->is_unknown = true;
		return;
	}
	copying->is_declared = true;
	if (has_flag(function, DW_AT_deleted))
		return;
	copying->is_possible = true;
	if (is_provided(function))
		copying->by_reference = true;
}

/* gcc 12 does not record how a class is passed, so shim applies the rules of the C++
 * ABI to its constructors and destructor. */
static void read_copying(Dwarf_Die *class, struct type *type)
{
	const char *name = dwarf_diename(class);
	struct copying copying = { .is_declared = false };
	uint64_t convention;
	Dwarf_Die child;

	if (read_number(class, DW_AT_calling_convention, &convention)) {
		if (convention == DW_CC_pass_by_reference)
			type->by_reference = true;
		if (convention == DW_CC_pass_by_reference ||
		    convention == DW_CC_pass_by_value)
			return;
	}
	if (dwarf_child(class, &child) != 0)
		return;
	do {
		if (dwarf_tag(&child) == DW_TAG_subprogram)
			note_function(class, name ? name : "",
				      name ? strcspn(name, "<") : 0, &child,
				      &copying);
	} while (dwarf_siblingof(&child, &child) == 0);
	type->by_reference |= copying.by_reference;
	type->by_reference |= copying.is_declared && !copying.is_possible;
	type->is_unknown |= copying.is_unknown && !copying.by_reference;
	type->is_unknown |= copying.assigns_move && !copying.is_declared &&
			    !copying.by_reference;
}

/* --- classes of eightbytes --- */

static enum eightbyte merge(enum eightbyte a, enum eightbyte b)
{
	if (a == b || b == NONE)
		return a;
	if (a == NONE)
		return b;
	if (a == INTEGER || b == INTEGER)
		return INTEGER;
	/* X87 together with another class is in memory; so is an X87UP without its
	 * X87. */
	if (a >= X87 || b >= X87)
		return X87UP;
	return SSE;
}

static void extend_used(struct type *type, uint64_t eightbyte, uint64_t end)
{
	uint64_t bytes = end - eightbyte * 8 < 8 ? end - eightbyte * 8 : 8;

	if (type->used[eightbyte] < bytes)
		type->used[eightbyte] = (uint8_t)bytes;
}

static void put_class(struct type *type, uint64_t offset, uint64_t size,
		      enum eightbyte class)
{
	if (size == 0)
		return;
	for (uint64_t i = offset / 8; i <= (offset + size - 1) / 8 && i < 2;
	     i++) {
		type->classes[i] = merge(type->classes[i], class);
		extend_used(type, i, offset + size);
	}
}

/* Copies the classes of the eightbytes that are known so far. */
static void copy_classes(const struct type *from, struct type *to)
{
	for (int i = 0; i < 2; i++) {
		to->classes[i] = from->classes[i];
		to->used[i] = from->used[i];
	}
}

static void put_scalar(struct type *type, uint64_t offset, uint64_t size,
		       uint64_t alignment, enum eightbyte class)
{
	type->size = size;
	if (alignment > type->alignment)
		type->alignment = alignment;
	if (alignment == 0 || offset % alignment != 0)
		type->in_memory = true;
	put_class(type, offset, size, class);
}

static void classify_base(Dwarf_Die *die, uint64_t offset, struct type *type)
{
	const char *name = dwarf_diename(die);
	uint64_t size = 0, encoding = 0;

	if (!read_number(die, DW_AT_byte_size, &size) ||
	    !read_number(die, DW_AT_encoding, &encoding) || !name) {
		type->is_unknown = true;
		return;
	}
	type->size = size;
	switch (encoding) {
	case DW_ATE_float:
		if (size <= 8)
			put_scalar(type, offset, size, size, SSE);
		else if (strcmp(name, "long double") == 0 && size == 16) {
			put_scalar(type, offset, 8, 16, X87);
			put_class(type, offset + 8, 8, X87UP);
			type->size = 16;
		} else
			type->is_unknown = true;
		return;
	case DW_ATE_complex_float:
		if (size <= 16)
			put_scalar(type, offset, size, size / 2, SSE);
		else if (strstr(name, "long double") && size == 32) {
			put_scalar(type, offset, 8, 16, X87);
			put_class(type, offset + 8, 8, X87UP);
			type->size = 32;
		} else { /* clang omits the name */
			type->is_unknown = true;
			type->is_wide = size == 32;
		}
		return;
	case DW_ATE_address:
	case DW_ATE_boolean:
	case DW_ATE_signed:
	case DW_ATE_signed_char:
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF:
		if (size <= 8 || (size == 16 && strstr(name, "__int128")))
			put_scalar(type, offset, size, size, INTEGER);
		else
			type->is_unknown = true;
		return;
	default: type->is_unknown = true;
	}
}

static void classify_field(Dwarf_Die *field, uint64_t offset, struct type *type,
			   unsigned depth)
{
	struct type inner = { .steps = type->steps };
	uint64_t at = 0, bits, first_bit, size, alignment = 0;
	Dwarf_Die die;

	/* A static member. */
	if (dwarf_tag(field) == DW_TAG_member &&
	    (has_flag(field, DW_AT_external) ||
	     has_flag(field, DW_AT_declaration)))
		return;
	if (!type_of(field, &die, &alignment)) {
		type->is_unknown = true;
		return;
	}
	if (read_number(field, DW_AT_bit_size, &bits)) {
		/* An __int128 aligns a class that is not packed. */
		if (!read_bit_offset(field, bits, 16, &first_bit) ||
		    offset > 16 || bits == 0 || bits > 64 ||
		    (read_number(&die, DW_AT_byte_size, &size) && size > 8)) {
			type->is_unknown |= offset <= 16;
			return;
		}
		first_bit += offset * 8;
		for (uint64_t i = first_bit / 64;
		     i <= (first_bit + bits - 1) / 64 && i < 2; i++) {
			type->classes[i] = merge(type->classes[i], INTEGER);
			extend_used(type, i, (first_bit + bits + 7) / 8);
		}
		return;
	}
	/* A virtual base: its location is an expression. */
	if (!read_number(field, DW_AT_data_member_location, &at) &&
	    dwarf_hasattr(field, DW_AT_data_member_location)) {
		type->by_reference = true;
		return;
	}
	copy_classes(type, &inner);
	classify(&die, offset + at, &inner, depth + 1);
	type->steps = inner.steps;
	read_number(field, DW_AT_alignment, &alignment);
	copy_classes(&inner, type);
	/* A vector in a structure is not supported. */
	type->is_unknown |= inner.is_unknown || inner.is_whole;
	type->in_memory |= inner.in_memory;
	type->by_reference |= inner.by_reference;
	if (inner.alignment > type->alignment)
		type->alignment = inner.alignment;
	if (alignment > type->alignment)
		type->alignment = alignment;
}

static void classify_class(Dwarf_Die *die, uint64_t offset, struct type *type,
			   unsigned depth)
{
	Dwarf_Die child, defined;

	/* clang describes a class in the unit of its constructors, gcc in the
	 * unit of its virtual functions. */
	if (has_flag(die, DW_AT_declaration) &&
	    signature_find_definition(die, &defined))
		die = &defined;
	if (has_flag(die, DW_AT_declaration) ||
	    !read_number(die, DW_AT_byte_size, &type->size)) {
		type->is_unknown = true;
		return;
	}
	read_copying(die, type);
	read_number(die, DW_AT_alignment, &type->alignment);
	if (dwarf_child(die, &child) != 0)
		return;
	do {
		if (dwarf_tag(&child) == DW_TAG_member ||
		    dwarf_tag(&child) == DW_TAG_inheritance)
			classify_field(&child, offset, type, depth);
	} while (dwarf_siblingof(&child, &child) == 0);
}

/* The number of elements; false if it is not constant. */
static bool count_elements(Dwarf_Die *array, uint64_t *count)
{
	uint64_t number;
	Dwarf_Die child;

	*count = 1;
	if (dwarf_child(array, &child) != 0)
		return false;
	do {
		if (dwarf_tag(&child) != DW_TAG_subrange_type)
			continue;
		if (read_number(&child, DW_AT_count, &number))
			;
		else if (read_number(&child, DW_AT_upper_bound, &number))
			number++;
		else /* a flexible one */
			number = 0;
		if (number > UINT32_MAX || *count > UINT32_MAX)
			return false;
		*count *= number;
	} while (dwarf_siblingof(&child, &child) == 0);
	return true;
}

static void classify_array(Dwarf_Die *die, uint64_t offset, struct type *type,
			   unsigned depth)
{
	uint64_t count, alignment = 0;
	struct type element = { .steps = type->steps };
	Dwarf_Die of;

	if (!type_of(die, &of, &alignment) || !count_elements(die, &count)) {
		type->is_unknown = true;
		return;
	}
	if (has_flag(die, DW_AT_GNU_vector)) {
		/* Larger vectors depend on the processor. */
		classify(&of, 0, &element, depth + 1);
		type->steps = element.steps;
		type->size = element.size * count;
		type->is_unknown |= element.is_unknown ||
				    (type->size != 8 && type->size != 16);
		type->is_wide = !element.is_unknown && type->size == 32;
		type->is_vector = !element.is_unknown &&
				  (type->size == 32 || type->size == 64);
		type->alignment = type->size;
		type->is_whole = type->size == 16;
		type->in_memory |= type->size && offset % type->size != 0;
		put_class(type, offset, type->size, SSE);
		return;
	}
	copy_classes(type, &element);
	for (uint64_t i = 0; i < count && i < ELEMENTS_MAX; i++)
		classify(&of, offset + i * element.size, &element, depth + 1);
	copy_classes(&element, type);
	type->steps = element.steps;
	type->size = element.size * count;
	type->alignment = element.alignment;
	type->is_unknown |= element.is_unknown || element.is_whole;
	type->in_memory |= element.in_memory;
	type->by_reference |= element.by_reference;
}

/* @die is peeled. */
static void classify(Dwarf_Die *die, uint64_t offset, struct type *type,
		     unsigned depth)
{
	uint64_t alignment = 0, size = 0;
	Dwarf_Die of;

	if (depth > DEPTH_MAX || type->steps++ > STEPS_MAX) {
		type->is_unknown = true;
		return;
	}
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type: classify_base(die, offset, type); break;
	case DW_TAG_unspecified_type: /* of nullptr */
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		put_scalar(type, offset, 8, 8, INTEGER);
		break;
	case DW_TAG_ptr_to_member_type:
		/* A pointer to a member function: its address, and the adjustment of this. */
		if (!type_of(die, &of, &alignment))
			type->is_unknown = true;
		else if (dwarf_tag(&of) == DW_TAG_subroutine_type)
			put_scalar(type, offset, 16, 8, INTEGER);
		else
			put_scalar(type, offset, 8, 8, INTEGER);
		break;
	case DW_TAG_enumeration_type:
		if (!read_number(die, DW_AT_byte_size, &size))
			type->is_unknown = true;
		else
			put_scalar(type, offset, size, size, INTEGER);
		break;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type: classify_class(die, offset, type, depth); break;
	case DW_TAG_array_type: classify_array(die, offset, type, depth); break;
	default: type->is_unknown = true;
	}
}

/* --- values --- */

static bool is_x87(const struct type *type)
{
	return type->classes[0] == X87 && type->classes[1] == X87UP;
}

static void set_value(const struct type *type, struct prototype_value *value)
{
	static const uint8_t classes[] = {
		[INTEGER] = PROTOTYPE_INTEGER, [SSE] = PROTOTYPE_SSE
	};

	value->size = (uint32_t)type->size;
	value->is_aligned = type->alignment == 16;
	value->is_odd = type->alignment > 16;
	value->is_wide = type->is_wide;
	value->is_vector = type->is_vector;
	if (type->is_unknown || type->size > UINT32_MAX)
		value->kind = PROTOTYPE_UNKNOWN;
	else if (type->by_reference)
		value->kind = PROTOTYPE_REFERENCE;
	else if (type->size <= 16 && !type->in_memory && is_x87(type))
		value->kind = PROTOTYPE_X87;
	else if (type->size > 16 || type->in_memory ||
		 type->classes[0] >= X87 || type->classes[1] >= X87)
		value->kind = PROTOTYPE_MEMORY;
	else if (type->classes[0] == NONE)
		value->kind = type->classes[1] == NONE ? PROTOTYPE_NOTHING :
							 PROTOTYPE_UNKNOWN;
	else {
		value->kind = PROTOTYPE_REGISTERS;
		value->is_whole = type->is_whole;
		for (int i = 0; i < 2; i++) {
			value->classes[i] = classes[type->classes[i]];
			value->used[i] = type->used[i];
		}
	}
}

/* Before version 18, clang may split an __int128 between the last register and
 * memory. */
static void set_int128(Dwarf_Die *die, struct prototype_value *value)
{
	const char *producer = read_producer(die);
	const char *clang = producer ? strstr(producer, "clang version ") :
				       NULL;

	value->is_split = clang && atoi(clang + 14) > 0 &&
			  atoi(clang + 14) < 18;
	value->is_odd = !value->is_split && is_made_by_clang(die);
}

/* Whether the location is in memory at an address: one in memory, or in a register
 * other than the frame's. */
static bool is_at_address(const Dwarf_Op *place, size_t size)
{
	bool is_frame = place[0].atom == DW_OP_fbreg ||
			place[0].atom == DW_OP_breg6 ||
			place[0].atom == DW_OP_breg7;

	if (size == 2 && place[1].atom == DW_OP_deref)
		return is_frame;
	return size == 1 && !is_frame && place[0].number == 0 &&
	       place[0].atom >= DW_OP_breg0 && place[0].atom <= DW_OP_breg31;
}

/* clang omits classes that another object should describe, such as std::string.  The
 * location of @parameter shows whether it is passed by reference. */
static bool is_passed_by_address(Dwarf_Die *parameter, Dwarf_Die *class)
{
	Dwarf_Attribute attribute;
	Dwarf_Addr base, start, end;
	Dwarf_Op *place;
	size_t size;
	ptrdiff_t offset = 0;
	bool has_place = false;

	if ((dwarf_tag(class) != DW_TAG_class_type &&
	     dwarf_tag(class) != DW_TAG_structure_type) ||
	    !has_flag(class, DW_AT_declaration) ||
	    dwarf_tag(parameter) != DW_TAG_formal_parameter ||
	    !dwarf_attr(parameter, DW_AT_location, &attribute))
		return false;
	if (attribute.form == DW_FORM_exprloc)
		return dwarf_getlocation(&attribute, &place, &size) == 0 &&
		       size > 0 && is_at_address(place, size);
	do {
		offset = dwarf_getlocations(&attribute, offset, &base, &start,
					    &end, &place, &size);
		if (offset > 0 && (size == 0 || !is_at_address(place, size)))
			return false;
		has_place |= offset > 0;
	} while (offset > 0);
	return offset == 0 && has_place;
}

void classify_value(Dwarf_Die *die, struct prototype_value *value)
{
	struct type type = { .size = 0 };
	uint64_t alignment = 0;
	Dwarf_Attribute attribute;
	Dwarf_Die of;

	*value = (struct prototype_value){ .kind = PROTOTYPE_NOTHING };
	if (!dwarf_attr_integrate(die, DW_AT_type, &attribute))
		return;
	if (!type_of(die, &of, &alignment)) {
		value->kind = dwarf_tag(die) == DW_TAG_subprogram ?
				      PROTOTYPE_NOTHING : /* const void */
				      PROTOTYPE_UNKNOWN;
		return;
	}
	classify(&of, 0, &type, 0);
	/* `_Complex long double` outside of a class. */
	if (dwarf_tag(&of) == DW_TAG_base_type && is_x87(&type)) {
		set_value(&type, value);
		value->kind = type.is_unknown ? PROTOTYPE_UNKNOWN :
						PROTOTYPE_X87;
		return;
	}
	set_value(&type, value);
	if (type.is_unknown && is_passed_by_address(die, &of)) {
		value->kind = PROTOTYPE_REFERENCE;
		value->size = 0;
	}
	if (dwarf_tag(&of) == DW_TAG_base_type && type.size == 16 &&
	    type.classes[0] == INTEGER)
		set_int128(die, value);
	/* A typedef may require another alignment, which scalars do not get. */
	if (alignment > 8 && alignment != type.alignment &&
	    dwarf_tag(&of) != DW_TAG_base_type &&
	    dwarf_tag(&of) != DW_TAG_enumeration_type &&
	    dwarf_tag(&of) != DW_TAG_pointer_type)
		value->is_odd = 1;
}

void classify_type(Dwarf_Die *die, struct prototype_value *value)
{
	struct type type = { .size = 0 };

	*value = (struct prototype_value){ .kind = PROTOTYPE_NOTHING };
	classify(die, 0, &type, 0);
	set_value(&type, value);
}
