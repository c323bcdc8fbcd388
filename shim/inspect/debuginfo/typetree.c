/*
 * Compiles types for printing, with only the debug information that a value's text
 * needs.  Classes are compiled one level deep.  The target of a pointer is compiled
 * without its fields and without further targets.
 *
 * Classes of the C++ library with a form of their own (std::string ...) are known by
 * name.  Their fields are found by name, too, so no offset is assumed.
 */
#include "inspect/debuginfo/typetree.h"

#include "inspect/debuginfo/attributes.h"
#include "inspect/debuginfo/typename.h"

#include <dwarf.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 32

struct builder {
	struct shim_typetree_node *nodes;
	struct shim_typetree_part *parts;
	char *text;
	size_t node_count, node_room, part_count, part_room;
	size_t text_size, text_room;
	bool is_full;	 /* a limit of the tree is reached */
	bool has_failed; /* no memory */
};

/* The position in the tree: levels of classes, and levels in all. */
struct place {
	unsigned level, depth;
	bool is_pointee;
};

static uint32_t compile(struct builder *builder, Dwarf_Die *type,
			struct place place);

/* --- memory --- */

static bool make_room(struct builder *builder, void **memory, size_t *room,
		      size_t needed, size_t element)
{
	size_t larger = *room ? *room : 64;
	void *moved;

	while (larger < needed)
		larger *= 2;
	if (larger == *room)
		return true;
	moved = realloc(*memory, larger * element);
	if (!moved) {
		builder->has_failed = true;
		return false;
	}
	*memory = moved;
	*room = larger;
	return true;
}

/* Returns the index of the new node. */
static uint32_t add_nodes(struct builder *builder)
{
	size_t at = builder->node_count;

	if (at + 1 > SHIM_TYPETREE_NODES_MAX) {
		builder->is_full = true;
		return 0;
	}
	if (!make_room(builder, (void **)&builder->nodes, &builder->node_room,
		       at + 1, sizeof(*builder->nodes)))
		return 0;
	memset(&builder->nodes[at], 0, sizeof(*builder->nodes));
	builder->nodes[at].kind = SHIM_TYPE_UNKNOWN;
	builder->node_count++;
	return (uint32_t)at;
}

static uint32_t add_parts(struct builder *builder, uint32_t node, size_t count)
{
	size_t at = builder->part_count;

	if (at + count > SHIM_TYPETREE_PARTS_MAX) {
		builder->is_full = true;
		return 0;
	}
	if (!make_room(builder, (void **)&builder->parts, &builder->part_room,
		       at + count, sizeof(*builder->parts)))
		return 0;
	memset(&builder->parts[at], 0, count * sizeof(*builder->parts));
	builder->part_count += count;
	builder->nodes[node].first = (uint32_t)at;
	builder->nodes[node].count = (uint32_t)count;
	return (uint32_t)at;
}

static uint32_t add_text(struct builder *builder, const char *text)
{
	size_t at = builder->text_size, size = text ? strlen(text) + 1 : 0;

	if (size <= 1)
		return 0;
	if (at + size > SHIM_TYPETREE_TEXT_MAX) {
		builder->is_full = true;
		return 0;
	}
	if (!make_room(builder, (void **)&builder->text, &builder->text_room,
		       at + size, 1))
		return 0;
	memcpy(builder->text + at, text, size);
	builder->text_size += size;
	return (uint32_t)at;
}

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
	at = add_text(builder, name);
	free(name);
	return at;
}

static bool goes_on(const struct builder *builder)
{
	return !builder->is_full && !builder->has_failed;
}

/* --- reading --- */

static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(
		dwarf_attr_integrate(die, DW_AT_type, &attribute), type);
}

/* Removes typedefs and qualifiers; false if the type is void. */
static bool peel(Dwarf_Die *die)
{
	for (unsigned i = 0; i < DEPTH_MAX; i++) {
		switch (dwarf_tag(die)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type: break;
		default: return true;
		}
		if (!type_of(die, die))
			return false;
	}
	return false;
}

static bool is_class(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
	       tag == DW_TAG_union_type;
}

static const char *name_of(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	return name ? name : "";
}

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The offset of a field or a base; false for a virtual base, whose offset is in the
 * object. */
static bool read_offset(Dwarf_Die *field, uint64_t *offset)
{
	uint64_t virtuality = 0;

	*offset = 0;
	if (dwarf_tag(field) == DW_TAG_inheritance &&
	    read_number(field, DW_AT_virtuality, &virtuality) &&
	    virtuality != 0)
		return false;
	return !dwarf_hasattr(field, DW_AT_data_member_location) ||
	       read_number(field, DW_AT_data_member_location, offset);
}

/* Whether it is a field of each object that the source declares, or a base. */
static bool is_field(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_inheritance: return true;
	case DW_TAG_member:
		return !has_flag(die, DW_AT_external) &&
		       !has_flag(die, DW_AT_declaration) &&
		       !has_flag(die, DW_AT_artificial);
	default: return false;
	}
}

/* --- fields of the C++ library --- */

struct found {
	Dwarf_Die type; /* not peeled */
	uint64_t offset;
};

static bool points_to(Dwarf_Die *type, Dwarf_Die *target)
{
	Dwarf_Die pointer = *type, to;

	return peel(&pointer) && dwarf_tag(&pointer) == DW_TAG_pointer_type &&
	       type_of(&pointer, &to) && peel(&to) &&
	       dwarf_dieoffset(&to) == dwarf_dieoffset(target);
}

/* Searches bases and fields, too; with @target, for a pointer to that only. */
static bool find_pointer(Dwarf_Die *class, const char *name, Dwarf_Die *target,
			 unsigned depth, struct found *found)
{
	Dwarf_Die field, type;
	uint64_t offset;

	if (depth > 8 || dwarf_child(class, &field) != 0)
		return false;
	do {
		if (!is_field(&field) || !type_of(&field, &type) ||
		    !read_offset(&field, &offset))
			continue;
		if (strcmp(name_of(&field), name) == 0 &&
		    (!target || points_to(&type, target))) {
			found->type = type;
			found->offset = offset;
			return true;
		}
		if (peel(&type) && is_class(&type) &&
		    find_pointer(&type, name, target, depth + 1, found)) {
			found->offset += offset;
			return true;
		}
	} while (dwarf_siblingof(&field, &field) == 0);
	return false;
}

static bool find_field(Dwarf_Die *class, const char *name, unsigned depth,
		       struct found *found)
{
	return find_pointer(class, name, NULL, depth, found);
}

static bool find_one_of(Dwarf_Die *class, const char *const names[2],
			struct found *found)
{
	for (unsigned i = 0; i < 2; i++)
		if (names[i] && find_field(class, names[i], 0, found))
			return true;
	return false;
}

static bool find_inner_class(Dwarf_Die *class, const char *name,
			     Dwarf_Die *inner)
{
	if (dwarf_child(class, inner) != 0)
		return false;
	do {
		if (is_class(inner) && strcmp(name_of(inner), name) == 0)
			return true;
	} while (dwarf_siblingof(inner, inner) == 0);
	return false;
}

static void set_part(struct builder *builder, uint32_t part, uint64_t offset,
		     uint32_t node)
{
	builder->parts[part].value = (int64_t)offset;
	builder->parts[part].node = node;
}

static bool take_field(struct builder *builder, uint32_t part,
		       struct found *found, struct place place)
{
	uint32_t node = compile(builder, &found->type, place);

	if (!goes_on(builder))
		return false;
	set_part(builder, part, found->offset, node);
	return true;
}

static bool take_two(struct builder *builder, uint32_t node,
		     struct found found[2], uint8_t form, struct place place)
{
	uint32_t part = add_parts(builder, node, 2);

	if (!goes_on(builder) || !take_field(builder, part, &found[0], place) ||
	    !take_field(builder, part + 1, &found[1], place))
		return false;
	builder->nodes[node].form = form;
	return true;
}

/* The older std::string: its length is before its characters. */
static bool find_length_before(Dwarf_Die *class, struct found *length)
{
	Dwarf_Die whole, base;
	uint64_t size;

	if (!find_inner_class(class, "_Rep", &whole) ||
	    !find_inner_class(class, "_Rep_base", &base) ||
	    !read_number(&whole, DW_AT_byte_size, &size) ||
	    !find_field(&base, "_M_length", 0, length))
		return false;
	length->offset -= size;
	return true;
}

/* Finds field @inner in field @name of @class. */
static bool find_within(Dwarf_Die *class, const char *name, const char *inner,
			struct found *found)
{
	struct found outer;

	if (!find_field(class, name, 0, &outer) || !peel(&outer.type) ||
	    !is_class(&outer.type) || !find_field(&outer.type, inner, 0, found))
		return false;
	found->offset += outer.offset;
	return true;
}

/* The default layout of libc++'s std::string; its alternative layout is not
 * supported. */
static bool compile_short_text(struct builder *builder, uint32_t node,
			       Dwarf_Die *class, struct place place)
{
	struct found found[4];
	uint32_t part;

	if (!find_within(class, "__l", "__data_", &found[0]) ||
	    !find_within(class, "__l", "__size_", &found[1]) ||
	    !find_within(class, "__s", "__size_", &found[2]) ||
	    !find_within(class, "__s", "__data_", &found[3]) ||
	    found[2].offset != 0 || found[3].offset != 1 ||
	    found[1].offset != sizeof(size_t))
		return false;
	part = add_parts(builder, node, 4);
	for (uint32_t i = 0; i < 4; i++)
		if (!goes_on(builder) ||
		    !take_field(builder, part + i, &found[i], place))
			return false;
	builder->nodes[node].form = SHIM_TYPETREE_SHORT_TEXT;
	return true;
}

static bool compile_text(struct builder *builder, uint32_t node,
			 Dwarf_Die *class, struct place place)
{
	struct found found[2];
	bool is_indirect = false;

	if (!find_field(class, "_M_p", 0, &found[0]))
		return compile_short_text(builder, node, class, place);
	if (!find_field(class, "_M_string_length", 0, &found[1])) {
		if (!find_length_before(class, &found[1]))
			return false;
		is_indirect = true;
	}
	if (!take_two(builder, node, found, SHIM_TYPETREE_TEXT, place))
		return false;
	if (is_indirect)
		builder->parts[builder->nodes[node].first + 1].flags =
			SHIM_TYPETREE_INDIRECT;
	return true;
}

static bool compile_view(struct builder *builder, uint32_t node,
			 Dwarf_Die *class, struct place place)
{
	static const char *const data[] = { "_M_str", "__data" };
	static const char *const size[] = { "_M_len", "__size" };
	struct found found[2];

	return find_one_of(class, data, &found[0]) &&
	       find_one_of(class, size, &found[1]) &&
	       take_two(builder, node, found, SHIM_TYPETREE_TEXT, place);
}

static bool compile_sequence(struct builder *builder, uint32_t node,
			     Dwarf_Die *class, struct place place)
{
	static const char *const first[] = { "_M_start", "__begin_" };
	static const char *const last[] = { "_M_finish", "__end_" };
	struct found found[2];
	Dwarf_Die element;
	uint32_t inner;

	if (!find_one_of(class, first, &found[0]) ||
	    !find_one_of(class, last, &found[1]))
		return false;
	element = found[0].type;
	if (!peel(&element) || dwarf_tag(&element) != DW_TAG_pointer_type ||
	    !type_of(&element, &element) ||
	    !take_two(builder, node, found, SHIM_TYPETREE_SEQUENCE, place))
		return false;
	inner = compile(builder, &element, place);
	if (!goes_on(builder) || builder->nodes[inner].size == 0) {
		builder->nodes[node].form = SHIM_TYPETREE_PLAIN;
		return false;
	}
	builder->nodes[node].inner = inner;
	return true;
}

static bool compile_wrapper(struct builder *builder, uint32_t node,
			    struct found *found, struct place place)
{
	uint32_t part = add_parts(builder, node, 1);

	if (!goes_on(builder) || !take_field(builder, part, found, place))
		return false;
	builder->nodes[node].form = SHIM_TYPETREE_WRAPPER;
	return true;
}

static bool compile_array_class(struct builder *builder, uint32_t node,
				Dwarf_Die *class, struct place place)
{
	static const char *const names[] = { "_M_elems", "__elems_" };
	struct found found;

	return find_one_of(class, names, &found) &&
	       compile_wrapper(builder, node, &found, place);
}

/* The first template argument of the class. */
static bool find_argument(Dwarf_Die *class, Dwarf_Die *argument)
{
	Dwarf_Die child;

	if (dwarf_child(class, &child) != 0)
		return false;
	do {
		if (dwarf_tag(&child) == DW_TAG_template_type_parameter)
			return type_of(&child, argument) && peel(argument);
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* A smart pointer; it may have other pointers, in its deleter. */
static bool compile_owner(struct builder *builder, uint32_t node,
			  Dwarf_Die *class, struct place place)
{
	static const char *const names[] = { "_M_head_impl", "_M_ptr",
					     "__value_", "__ptr_" };
	struct found found;
	Dwarf_Die argument;

	if (!find_argument(class, &argument))
		return false;
	for (unsigned i = 0; i < 4; i++)
		if (find_pointer(class, names[i], &argument, 0, &found))
			return compile_wrapper(builder, node, &found, place);
	return false;
}

static bool compile_optional(struct builder *builder, uint32_t node,
			     Dwarf_Die *class, struct place place)
{
	static const char *const value[] = { "_M_value", "__val_" };
	static const char *const is[] = { "_M_engaged", "__engaged_" };
	struct found found[2];

	return find_one_of(class, value, &found[0]) &&
	       find_one_of(class, is, &found[1]) &&
	       take_two(builder, node, found, SHIM_TYPETREE_OPTIONAL, place);
}

static bool compile_known(struct builder *builder, uint32_t node,
			  Dwarf_Die *class, struct place place)
{
	static const struct {
		const char *prefix;
		bool (*compile)(struct builder *builder, uint32_t node,
				Dwarf_Die *class, struct place place);
	} known[] = {
		{ "basic_string<char,", compile_text },
		{ "basic_string<char>", compile_text },
		{ "basic_string_view<char,", compile_view },
		{ "basic_string_view<char>", compile_view },
		{ "vector<", compile_sequence },
		{ "array<", compile_array_class },
		{ "unique_ptr<", compile_owner },
		{ "shared_ptr<", compile_owner },
		{ "optional<", compile_optional },
	};
	const char *name = name_of(class);

	if (has_flag(class, DW_AT_declaration) ||
	    begins_with(name, "vector<bool"))
		return false;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (begins_with(name, known[i].prefix))
			return typename_is_standard(class) &&
			       known[i].compile(builder, node, class, place);
	return false;
}

/* --- classes --- */

static void compile_field(struct builder *builder, Dwarf_Die *field,
			  uint64_t base, uint32_t index, struct place place)
{
	struct shim_typetree_part part = { .name = 0 };
	uint64_t offset = 0, bits = 0, first = 0;
	Dwarf_Die type;
	bool is_understood = type_of(field, &type);

	if (read_number(field, DW_AT_bit_size, &bits)) {
		is_understood &= bits > 0 && bits <= 64 &&
				 read_bit_offset(field, bits, 8, &first);
		offset = first / 8;
		part.bit = (uint8_t)(first % 8);
		part.bits = (uint8_t)bits;
	} else {
		is_understood &= read_offset(field, &offset);
	}
	part.value = (int64_t)(base + offset);
	part.name = add_text(builder, dwarf_tag(field) == DW_TAG_inheritance ?
					      name_of(&type) :
					      name_of(field));
	part.node = is_understood ? compile(builder, &type, place) :
				    add_nodes(builder);
	if (goes_on(builder))
		builder->parts[index] = part;
}

/* An anonymous struct or union, whose fields belong to the outer one. */
static bool is_transparent(Dwarf_Die *field, Dwarf_Die *type)
{
	return dwarf_tag(field) == DW_TAG_member && !dwarf_diename(field) &&
	       !dwarf_hasattr(field, DW_AT_bit_size) && type_of(field, type) &&
	       is_class(type);
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
		if (!goes_on(builder))
			break;
		if (!is_field(&field))
			continue;
		if (is_transparent(&field, &type)) {
			read_offset(&field, &offset);
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
	if (place.is_pointee || compile_known(builder, node, class, place) ||
	    !goes_on(builder))
		return;
	builder->nodes[node].count = 0;
	if (place.level > 0 || has_flag(class, DW_AT_declaration)) {
		builder->nodes[node].is_cut = true;
		return;
	}
	place.level++;
	first = add_parts(builder, node, count_fields(class, place.depth));
	if (goes_on(builder))
		compile_fields(builder, class, 0, first, place);
}

/* --- enumerations --- */

static bool is_unsigned(Dwarf_Die *enumeration)
{
	uint64_t encoding = DW_ATE_signed;
	Dwarf_Die type;

	if (!type_of(enumeration, &type) || !peel(&type))
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
 * enumeration that counts from 0 or 1 without a gap is not: 3 in {A, B, C} is not B|C.
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
	at = add_parts(builder, node, count);
	if (!goes_on(builder) || dwarf_child(type, &child) != 0)
		return;
	do {
		uint32_t name;

		if (dwarf_tag(&child) != DW_TAG_enumerator)
			continue;
		name = add_text(builder, name_of(&child));
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
	if (type_of(type, &target))
		inner = compile(builder, &target, place);
	if (goes_on(builder))
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
		inner = add_nodes(builder);
		if (goes_on(builder))
			compile_dimensions(builder, type, next, inner, place);
	} else {
		inner = type_of(type, &element) ?
				compile(builder, &element, place) :
				add_nodes(builder);
	}
	if (!goes_on(builder))
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
	if (goes_on(builder) && read_number(type, DW_AT_byte_size, &size))
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
		if (type_of(type, type) && peel(type) &&
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

/* Adds a node for @type; unsupported types are SHIM_TYPE_UNKNOWN.  Nodes move when more
 * are added. */
static uint32_t compile(struct builder *builder, Dwarf_Die *type,
			struct place place)
{
	uint32_t node = add_nodes(builder), name = 0;
	Dwarf_Die peeled;

	place.depth++;
	if (!goes_on(builder) || place.depth > DEPTH_MAX)
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
	if (!goes_on(builder))
		return node;
	builder->nodes[node].name = name;
	if (peeled.addr)
		compile_peeled(builder, node, &peeled, place);
	return node;
}

/* --- an answer --- */

/* Its memory is reused for each answer. */
static struct builder shared;

static void begin(struct builder *builder)
{
	builder->node_count = builder->part_count = builder->text_size = 0;
	builder->is_full = builder->has_failed = false;
	/* The first string is empty. */
	if (make_room(builder, (void **)&builder->text, &builder->text_room, 1,
		      1))
		builder->text[builder->text_size++] = '\0';
}

/* A type that is too large becomes SHIM_TYPE_UNKNOWN with its name. */
static void compile_root(struct builder *builder, Dwarf_Die *type)
{
	uint32_t name;

	begin(builder);
	compile(builder, type, (struct place){ .level = 0 });
	if (!builder->is_full)
		return;
	begin(builder);
	add_nodes(builder);
	name = add_type_name(builder, type);
	if (goes_on(builder))
		builder->nodes[0].name = name;
	builder->is_full = false;
}

static void compile_name(struct builder *builder, const char *type_name)
{
	uint32_t name;

	begin(builder);
	add_nodes(builder);
	name = add_text(builder, type_name);
	if (goes_on(builder))
		builder->nodes[0].name = name;
	builder->is_full = false;
}

static size_t round_up(size_t size)
{
	return (size + 7) / 8 * 8;
}

static bool make_list_room(struct typetree_list *list, size_t size)
{
	size_t room = list->room ? list->room : 4096;
	char *larger;

	while (room < list->size + size)
		room *= 2;
	if (room == list->room)
		return true;
	larger = realloc(list->memory, room);
	if (!larger)
		return false;
	list->memory = larger;
	list->room = room;
	return true;
}

static void append(struct typetree_list *list, const void *data, size_t size)
{
	if (size > 0)
		memcpy(list->memory + list->size, data, size);
	list->size += size;
}

static void pad(struct typetree_list *list)
{
	while (list->size % 8 != 0)
		list->memory[list->size++] = '\0';
}

static bool append_value(struct typetree_list *list,
			 const struct builder *builder, const char *name)
{
	struct typetree_value value;
	struct shim_typetree tree;
	size_t nodes, parts;

	if (builder->has_failed)
		return false;
	nodes = builder->node_count * sizeof(*builder->nodes);
	parts = builder->part_count * sizeof(*builder->parts);
	tree = (struct shim_typetree){
		.size = (uint32_t)round_up(sizeof(tree) + nodes + parts +
					   builder->text_size),
		.node_count = (uint32_t)builder->node_count,
		.part_count = (uint32_t)builder->part_count,
		.text_size = (uint32_t)builder->text_size,
	};
	value.name_size = (uint32_t)strlen(name) + 1;
	value.size = (uint32_t)round_up(sizeof(value) + tree.size +
					value.name_size);
	if (!make_list_room(list, value.size))
		return false;
	append(list, &value, sizeof(value));
	append(list, &tree, sizeof(tree));
	append(list, builder->nodes, nodes);
	append(list, builder->parts, parts);
	append(list, builder->text, builder->text_size);
	pad(list);
	append(list, name, value.name_size);
	pad(list);
	return true;
}

bool typetree_add(struct typetree_list *list, Dwarf_Die *die, const char *name)
{
	Dwarf_Die type;

	compile_root(&shared, type_of(die, &type) ? &type : NULL);
	return append_value(list, &shared, name ? name : "");
}

bool typetree_add_type(struct typetree_list *list, Dwarf_Die *type,
		       const char *type_name)
{
	if (type)
		compile_root(&shared, type);
	else
		compile_name(&shared, type_name);
	return append_value(list, &shared, "");
}
