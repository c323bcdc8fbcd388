/*
 * Compiles classes of the C++ library that print in a special form (std::string ...).
 * Their names identify the classes.  Fields are found by their names, too, so no offset
 * is assumed.
 */
#include "inspect/debuginfo/attributes.h"
#include "inspect/debuginfo/compile.h"
#include "inspect/debuginfo/fields.h"
#include "inspect/debuginfo/typename.h"

#include <string.h>

/* --- finding fields --- */

struct found {
	Dwarf_Die type; /* not peeled */
	uint64_t offset;
};

static bool points_to(Dwarf_Die *type, Dwarf_Die *target)
{
	Dwarf_Die pointer = *type, to;

	return peel(&pointer) && dwarf_tag(&pointer) == DW_TAG_pointer_type &&
	       read_type(&pointer, &to) && peel(&to) &&
	       dwarf_dieoffset(&to) == dwarf_dieoffset(target);
}

/* Searches bases and fields, too.  With @target, searches only a pointer to that
 * type. */
static bool find_pointer(Dwarf_Die *class, const char *name, Dwarf_Die *target,
			 unsigned depth, struct found *found)
{
	Dwarf_Die field, type;
	uint64_t offset;

	if (depth > 8 || dwarf_child(class, &field) != 0)
		return false;
	do {
		if (!is_field(&field) || !read_type(&field, &type) ||
		    !read_field_offset(&field, &offset))
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

static bool add_field(struct builder *builder, uint32_t part,
		      struct found *found, struct place place)
{
	uint32_t node = typetree_compile(builder, &found->type, place);

	if (!builder_has_room(builder))
		return false;
	set_part(builder, part, found->offset, node);
	return true;
}

static bool add_two_fields(struct builder *builder, uint32_t node,
			   struct found found[2], uint8_t form,
			   struct place place)
{
	uint32_t part = builder_add_parts(builder, node, 2);

	if (!builder_has_room(builder) ||
	    !add_field(builder, part, &found[0], place) ||
	    !add_field(builder, part + 1, &found[1], place))
		return false;
	builder->nodes[node].form = form;
	return true;
}

/* Finds the length of the older std::string, which is before its characters. */
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

/* Compiles the default layout of libc++'s std::string.  The alternative layout is not
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
	part = builder_add_parts(builder, node, 4);
	for (uint32_t i = 0; i < 4; i++)
		if (!builder_has_room(builder) ||
		    !add_field(builder, part + i, &found[i], place))
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
	if (!add_two_fields(builder, node, found, SHIM_TYPETREE_TEXT, place))
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
	       add_two_fields(builder, node, found, SHIM_TYPETREE_TEXT, place);
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
	    !read_type(&element, &element) ||
	    !add_two_fields(builder, node, found, SHIM_TYPETREE_SEQUENCE,
			    place))
		return false;
	inner = typetree_compile(builder, &element, place);
	if (!builder_has_room(builder) || builder->nodes[inner].size == 0) {
		builder->nodes[node].form = SHIM_TYPETREE_PLAIN;
		return false;
	}
	builder->nodes[node].inner = inner;
	return true;
}

static bool compile_wrapper(struct builder *builder, uint32_t node,
			    struct found *found, struct place place)
{
	uint32_t part = builder_add_parts(builder, node, 1);

	if (!builder_has_room(builder) ||
	    !add_field(builder, part, found, place))
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
			return read_type(&child, argument) && peel(argument);
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* Compiles a smart pointer.  Its deleter may have further pointers. */
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
	       add_two_fields(builder, node, found, SHIM_TYPETREE_OPTIONAL,
			      place);
}

bool typetree_compile_library(struct builder *builder, uint32_t node,
			      Dwarf_Die *class, struct place place)
{
	static const struct {
		const char *prefix;
		bool (*compile)(struct builder *builder, uint32_t node,
				Dwarf_Die *class, struct place place);
	} compilers[] = {
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
	for (size_t i = 0; i < sizeof(compilers) / sizeof(*compilers); i++)
		if (begins_with(name, compilers[i].prefix))
			return typename_is_standard(class) &&
			       compilers[i].compile(builder, node, class,
						    place);
	return false;
}
