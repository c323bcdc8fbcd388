/*
 * Compiles types for printing.  Keeps only the debug information that the text of a
 * value needs.  Classes are compiled one level deep.  The target of a pointer is
 * compiled without its fields and without further targets.
 */
#include "inspect/debuginfo/typetree.h"

#include "inspect/debuginfo/attributes.h"
#include "inspect/debuginfo/builder.h"
#include "inspect/debuginfo/compile.h"
#include "inspect/debuginfo/fields.h"
#include "inspect/debuginfo/typename.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 32

static uint32_t add_type_name(struct builder *builder, Dwarf_Die *type)
{
	char *name = NULL;
	size_t size = 0;
	uint32_t at;
	FILE *out = open_memstream(&name, &size);

	if (!out) {
		builder->has_failed = true;
		return 0;
	}
	typename_print(type, out);
	if (fclose(out) != 0)
		builder->has_failed = true;
	at = builder_add_text(builder, name);
	free(name);
	return at;
}

/* --- classes --- */

static void compile_field(struct builder *builder, Dwarf_Die *field,
			  uint64_t base, uint32_t index, struct place place)
{
	struct shim_typetree_part part = { .name = 0 };
	uint64_t offset = 0, bits = 0, first = 0;
	Dwarf_Die type;
	bool is_understood = read_type(field, &type);

	if (read_number(field, DW_AT_bit_size, &bits)) {
		is_understood &= bits > 0 && bits <= 64 &&
				 read_bit_offset(field, bits, 8, &first);
		offset = first / 8;
		part.bit = (uint8_t)(first % 8);
		part.bits = (uint8_t)bits;
	} else {
		is_understood &= read_field_offset(field, &offset);
	}
	part.value = (int64_t)(base + offset);
	part.name = builder_add_text(builder,
				     dwarf_tag(field) == DW_TAG_inheritance ?
					     name_of(&type) :
					     name_of(field));
	part.node = is_understood ? typetree_compile(builder, &type, place) :
				    builder_add_node(builder);
	if (builder_has_room(builder))
		builder->parts[index] = part;
}

/* An anonymous struct or union, whose fields belong to the outer one. */
static bool is_transparent(Dwarf_Die *field, Dwarf_Die *type)
{
	return dwarf_tag(field) == DW_TAG_member && !dwarf_diename(field) &&
	       !dwarf_hasattr(field, DW_AT_bit_size) &&
	       read_type(field, type) && is_class(type);
}

static size_t count_fields(Dwarf_Die *class, unsigned depth)
{
	Dwarf_Die field, type;
	size_t count = 0;

	if (depth > DEPTH_MAX || dwarf_child(class, &field) != 0)
		return 0;
	do {
		if (!is_field(&field))
			continue;
		count += is_transparent(&field, &type) ?
				 count_fields(&type, depth + 1) :
				 1;
	} while (dwarf_siblingof(&field, &field) == 0);
	return count;
}

static uint32_t compile_fields(struct builder *builder, Dwarf_Die *class,
			       uint64_t base, uint32_t index,
			       struct place place)
{
	Dwarf_Die field, type;
	uint64_t offset;

	place.depth++;
	if (place.depth > DEPTH_MAX || dwarf_child(class, &field) != 0)
		return index;
	do {
		if (!builder_has_room(builder))
			break;
		if (!is_field(&field))
			continue;
		if (is_transparent(&field, &type)) {
			read_field_offset(&field, &offset);
			index = compile_fields(builder, &type, base + offset,
					       index, place);
		} else {
			compile_field(builder, &field, base, index++, place);
		}
	} while (dwarf_siblingof(&field, &field) == 0);
	return index;
}

static void compile_class(struct builder *builder, uint32_t node,
			  Dwarf_Die *class, struct place place)
{
	uint32_t first;
	uint64_t size;

	builder->nodes[node].kind = dwarf_tag(class) == DW_TAG_union_type ?
					    SHIM_TYPE_UNION :
					    SHIM_TYPE_STRUCT;
	if (read_number(class, DW_AT_byte_size, &size))
		builder->nodes[node].size = size;
	if (place.is_pointee ||
	    typetree_compile_library(builder, node, class, place) ||
	    !builder_has_room(builder))
		return;
	builder->nodes[node].count = 0;
	if (place.level > 0 || has_flag(class, DW_AT_declaration)) {
		builder->nodes[node].is_cut = true;
		return;
	}
	place.level++;
	first = builder_add_parts(builder, node,
				  count_fields(class, place.depth));
	if (builder_has_room(builder))
		compile_fields(builder, class, 0, first, place);
}

/* --- enumerations --- */

static bool is_unsigned(Dwarf_Die *enumeration)
{
	uint64_t encoding = DW_ATE_signed;
	Dwarf_Die type;

	if (!read_type(enumeration, &type) || !peel(&type))
		return false;
	read_number(&type, DW_AT_encoding, &encoding);
	return encoding == DW_ATE_unsigned ||
	       encoding == DW_ATE_unsigned_char || encoding == DW_ATE_boolean ||
	       encoding == DW_ATE_UTF;
}

static int64_t read_enumerator(Dwarf_Die *die, bool without_sign)
{
	Dwarf_Attribute attribute;
	Dwarf_Word word = 0;
	Dwarf_Sword number = 0;

	if (!dwarf_attr(die, DW_AT_const_value, &attribute))
		return 0;
	if (without_sign) {
		dwarf_formudata(&attribute, &word);
		return (int64_t)word;
	}
	dwarf_formsdata(&attribute, &number);
	return number;
}

/*
 * Whether enumerators are flags: each is one bit, or a combination of named bits.  An
 * enumeration that counts from 0 or 1 without a gap has no flags: 3 in {A, B, C} is not
 * B|C.
 */
static bool are_flags(const struct shim_typetree_part *parts, size_t count)
{
	uint64_t bits = 0, most = 0;
	size_t singles = 0, others = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t value = (uint64_t)parts[i].value;

		if (parts[i].value < 0)
			return false;
		most = value > most ? value : most;
		if (value && (value & (value - 1)) == 0 && !(bits & value)) {
			bits |= value;
			singles++;
		}
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t value = (uint64_t)parts[i].value;

		if (value & ~bits)
			return false;
		others += (value & (value - 1)) != 0;
	}
	return singles >= 2 && others < singles && most > singles + others;
}

static void compile_enumeration(struct builder *builder, uint32_t node,
				Dwarf_Die *type)
{
	bool without_sign = is_unsigned(type);
	uint64_t size = 0;
	size_t count = 0;
	Dwarf_Die child;
	uint32_t at;

	read_number(type, DW_AT_byte_size, &size);
	builder->nodes[node].kind = SHIM_TYPE_ENUM;
	builder->nodes[node].size = size;
	builder->nodes[node].is_signed = !without_sign;
	if (dwarf_child(type, &child) != 0)
		return;
	do
		count += dwarf_tag(&child) == DW_TAG_enumerator;
	while (dwarf_siblingof(&child, &child) == 0);
	at = builder_add_parts(builder, node, count);
	if (!builder_has_room(builder) || dwarf_child(type, &child) != 0)
		return;
	do {
		uint32_t name;

		if (dwarf_tag(&child) != DW_TAG_enumerator)
			continue;
		name = builder_add_text(builder, name_of(&child));
		builder->parts[at].name = name;
		builder->parts[at++].value = read_enumerator(&child,
							     without_sign);
	} while (dwarf_siblingof(&child, &child) == 0);
	builder->nodes[node].is_flags = are_flags(
		&builder->parts[builder->nodes[node].first], count);
}

/* --- numbers --- */

static bool find_format(const char *name, uint64_t size, uint8_t *format)
{
	bool is_quad = strstr(name, "loat128") != NULL;

	switch (size) {
	case 2:
		*format = SHIM_TYPETREE_BINARY16;
		return strstr(name, "bf16") == NULL &&
		       strstr(name, "bfloat") == NULL;
	case 4: *format = SHIM_TYPETREE_BINARY32; return true;
	case 8: *format = SHIM_TYPETREE_BINARY64; return true;
	case 16:
		*format = is_quad || LDBL_MANT_DIG == 113 ?
				  SHIM_TYPETREE_BINARY128 :
				  SHIM_TYPETREE_X87;
		return is_quad || LDBL_MANT_DIG == 64 || LDBL_MANT_DIG == 113;
	default: return false;
	}
}

static bool is_character(const char *name, uint64_t encoding)
{
	return encoding == DW_ATE_UTF || strcmp(name, "char") == 0 ||
	       strcmp(name, "wchar_t") == 0 || strcmp(name, "char8_t") == 0;
}

static uint8_t kind_of_base(Dwarf_Die *die, uint64_t size, uint8_t *format)
{
	const char *name = name_of(die);
	uint64_t encoding = 0;

	read_number(die, DW_AT_encoding, &encoding);
	*format = SHIM_TYPETREE_INTEGER;
	/* The upper bits of these types are undefined. */
	if (strstr(name, "BitInt") || strstr(name, "ExtInt") || size == 0)
		return SHIM_TYPE_UNKNOWN;
	switch (encoding) {
	case DW_ATE_float:
		return find_format(name, size, format) ? SHIM_TYPE_FLOAT :
							 SHIM_TYPE_UNKNOWN;
	case DW_ATE_complex_float:
		return find_format(name, size / 2, format) ? SHIM_TYPE_COMPLEX :
							     SHIM_TYPE_UNKNOWN;
	default: break;
	}
	if (size > 16 || (size & (size - 1)) != 0)
		return SHIM_TYPE_UNKNOWN;
	if (size <= 4 && is_character(name, encoding))
		return SHIM_TYPE_CHARACTER;
	switch (encoding) {
	case DW_ATE_boolean: return SHIM_TYPE_BOOL;
	case DW_ATE_signed:
	case DW_ATE_signed_char: return SHIM_TYPE_SIGNED;
	case DW_ATE_address:
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char: return SHIM_TYPE_UNSIGNED;
	default: return SHIM_TYPE_UNKNOWN;
	}
}

static void compile_base(struct builder *builder, uint32_t node,
			 Dwarf_Die *type)
{
	struct shim_typetree_node *at = &builder->nodes[node];

	read_number(type, DW_AT_byte_size, &at->size);
	at->kind = kind_of_base(type, at->size, &at->format);
}

/* --- other types --- */

static void compile_pointer(struct builder *builder, uint32_t node,
			    Dwarf_Die *type, struct place place)
{
	bool is_reference = dwarf_tag(type) != DW_TAG_pointer_type;
	uint32_t inner = 0;
	Dwarf_Die target;

	builder->nodes[node].size = sizeof(void *);
	read_number(type, DW_AT_byte_size, &builder->nodes[node].size);
	builder->nodes[node].kind = is_reference ? SHIM_TYPE_REFERENCE :
						   SHIM_TYPE_POINTER;
	if (place.is_pointee)
		return;
	place.is_pointee = !is_reference;
	if (read_type(type, &target))
		inner = typetree_compile(builder, &target, place);
	if (builder_has_room(builder))
		builder->nodes[node].inner = inner;
}

static bool read_dimension(Dwarf_Die *die, uint64_t *elements)
{
	if (read_number(die, DW_AT_count, elements))
		return true;
	if (!read_number(die, DW_AT_upper_bound, elements))
		return false;
	/* An upper bound of -1 describes an array without elements. */
	++*elements;
	return *elements <= UINT32_MAX || *elements == 0;
}

/* An array of arrays has several dimensions, outermost first. */
static uint32_t compile_dimensions(struct builder *builder, Dwarf_Die *type,
				   Dwarf_Die dimension, uint32_t node,
				   struct place place)
{
	struct shim_typetree_node *at = &builder->nodes[node];
	uint64_t elements = UINT64_MAX;
	Dwarf_Die element, next = dimension;
	bool has_next = false;
	uint32_t inner;

	at->kind = has_flag(type, DW_AT_GNU_vector) ? SHIM_TYPE_VECTOR :
						      SHIM_TYPE_ARRAY;
	if (!read_dimension(&dimension, &elements))
		elements = UINT64_MAX;
	at->elements = elements;
	while (!has_next && dwarf_siblingof(&next, &next) == 0)
		has_next = dwarf_tag(&next) == DW_TAG_subrange_type;
	place.depth++;
	if (place.depth > DEPTH_MAX) {
		at->kind = SHIM_TYPE_UNKNOWN;
		return node;
	}
	if (has_next) {
		inner = builder_add_node(builder);
		if (builder_has_room(builder))
			compile_dimensions(builder, type, next, inner, place);
	} else {
		inner = read_type(type, &element) ?
				typetree_compile(builder, &element, place) :
				builder_add_node(builder);
	}
	if (!builder_has_room(builder))
		return node;
	at = &builder->nodes[node];
	at->inner = inner;
	if (elements != UINT64_MAX &&
	    builder->nodes[inner].size <= UINT64_MAX / (elements + 1))
		at->size = elements * builder->nodes[inner].size;
	return node;
}

static void compile_array(struct builder *builder, uint32_t node,
			  Dwarf_Die *type, struct place place)
{
	uint64_t size;
	Dwarf_Die child;

	builder->nodes[node].kind = SHIM_TYPE_ARRAY;
	if (place.is_pointee || dwarf_child(type, &child) != 0)
		return;
	while (dwarf_tag(&child) != DW_TAG_subrange_type)
		if (dwarf_siblingof(&child, &child) != 0)
			return;
	compile_dimensions(builder, type, child, node, place);
	if (builder_has_room(builder) &&
	    read_number(type, DW_AT_byte_size, &size))
		builder->nodes[node].size = size;
}

static void compile_peeled(struct builder *builder, uint32_t node,
			   Dwarf_Die *type, struct place place)
{
	struct shim_typetree_node *at = &builder->nodes[node];

	switch (dwarf_tag(type)) {
	case DW_TAG_base_type: compile_base(builder, node, type); break;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		compile_pointer(builder, node, type, place);
		break;
	case DW_TAG_ptr_to_member_type:
		at->kind = SHIM_TYPE_MEMBER_POINTER;
		at->size = sizeof(void *);
		if (read_type(type, type) && peel(type) &&
		    dwarf_tag(type) == DW_TAG_subroutine_type)
			at->size = 2 * sizeof(void *);
		break;
	case DW_TAG_unspecified_type:
		if (strcmp(name_of(type), "decltype(nullptr)") == 0) {
			at->kind = SHIM_TYPE_POINTER;
			at->size = sizeof(void *);
		}
		break;
	case DW_TAG_enumeration_type:
		compile_enumeration(builder, node, type);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		compile_class(builder, node, type, place);
		break;
	case DW_TAG_array_type:
		compile_array(builder, node, type, place);
		break;
	case DW_TAG_subroutine_type: at->kind = SHIM_TYPE_FUNCTION; break;
	default: break;
	}
}

uint32_t typetree_compile(struct builder *builder, Dwarf_Die *type,
			  struct place place)
{
	uint32_t node = builder_add_node(builder), name = 0;
	Dwarf_Die peeled;

	place.depth++;
	if (!builder_has_room(builder) || place.depth > DEPTH_MAX)
		return node;
	if (type)
		peeled = *type;
	if (!type || !peel(&peeled)) {
		builder->nodes[node].kind = SHIM_TYPE_VOID;
		peeled.addr = NULL;
	}
	if (node == 0 ||
	    (peeled.addr && dwarf_tag(&peeled) == DW_TAG_enumeration_type))
		name = add_type_name(builder, type);
	if (!builder_has_room(builder))
		return node;
	builder->nodes[node].name = name;
	if (peeled.addr)
		compile_peeled(builder, node, &peeled, place);
	return node;
}

/* --- an answer --- */

/* The builder of all answers, which reuse its memory. */
static struct builder shared;

/* A type that is too large becomes SHIM_TYPE_UNKNOWN with its name. */
static void compile_root(struct builder *builder, Dwarf_Die *type)
{
	uint32_t name;

	builder_begin(builder);
	typetree_compile(builder, type, (struct place){ .level = 0 });
	if (!builder->is_full)
		return;
	builder_begin(builder);
	builder_add_node(builder);
	name = add_type_name(builder, type);
	if (builder_has_room(builder))
		builder->nodes[0].name = name;
	builder->is_full = false;
}

static void compile_name(struct builder *builder, const char *type_name)
{
	uint32_t name;

	builder_begin(builder);
	builder_add_node(builder);
	name = builder_add_text(builder, type_name);
	if (builder_has_room(builder))
		builder->nodes[0].name = name;
	builder->is_full = false;
}

bool typetree_add(struct typetree_list *list, Dwarf_Die *die, const char *name)
{
	Dwarf_Die type;

	compile_root(&shared, read_type(die, &type) ? &type : NULL);
	return builder_append(list, &shared, name ? name : "");
}

bool typetree_add_type(struct typetree_list *list, Dwarf_Die *type,
		       const char *type_name)
{
	if (type)
		compile_root(&shared, type);
	else
		compile_name(&shared, type_name);
	return builder_append(list, &shared, "");
}
