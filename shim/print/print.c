/*
 * Prints a value by its type tree.  A callback reads the memory that pointers lead to,
 * so the same code prints values of the live process and of a recording.
 */
#include "print/print.h"

#include "print/print_number.h"
#include "print/printer.h"

#include <shim/banned.h>

#define DEPTH_MAX  8 /* each level takes about 300 bytes of stack */
#define SHORT_TEXT 64u
#define SHORT_LIST 16u
#define LONG_LIST  256u

static void print_node(struct printer *printer, uint32_t index,
		       struct place place);

/* --- strings --- */

#define TO_NUL UINT64_MAX

static size_t text_max(const struct printer *printer)
{
	return printer->is_long ? PRINT_TEXT_MAX : SHORT_TEXT;
}

/* Reads as many bytes as can be read, at most @wanted; with @to_nul, only the bytes
 * before the NUL. */
static size_t get_text(struct printer *printer, struct place place,
		       size_t wanted, bool to_nul, bool *has_end)
{
	unsigned char *text = printer->space->text;
	size_t got = 0;

	*has_end = false;
	while (got < wanted) {
		uintptr_t from = place.address + got;
		size_t piece = printer_left_in_page(from);

		if (piece > wanted - got)
			piece = wanted - got;
		if (place.is_own)
			printer_copy(text + got, (const void *)from, piece);
		else if (from < place.address ||
			 !printer_read(printer, from, text + got, piece))
			return got;
		for (size_t i = 0; to_nul && i < piece; i++) {
			if (text[got + i] != '\0')
				continue;
			*has_end = true;
			return got + i;
		}
		got += piece;
	}
	return got;
}

/* The size of @text cut to @max bytes, between two characters if it is UTF-8. */
static size_t cut_text(const unsigned char *text, size_t size, size_t max)
{
	size_t back = 0;

	if (size <= max)
		return size;
	while (back < 3 && back < max && (text[max - back] & 0xc0) == 0x80)
		back++;
	return (text[max - back] & 0xc0) == 0x80 ? max : max - back;
}

/* @length: the bytes of the string, or TO_NUL; @room: the most bytes that the string
 * can have. */
static void print_text(struct printer *printer, struct place place,
		       uint64_t length, uint64_t room)
{
	size_t max = text_max(printer), wanted = max + 1, got, shown;
	bool to_nul = length == TO_NUL, has_end, is_cut;

	if (length < wanted)
		wanted = (size_t)length;
	if (room < wanted)
		wanted = (size_t)room;
	got = get_text(printer, place, wanted, to_nul, &has_end);
	if (got == 0 && wanted > 0 && !has_end) {
		printer_put_unreadable(printer, place.address);
		return;
	}
	/* A character array that is full has no NUL. */
	is_cut = !has_end && got != length && got != room;
	shown = cut_text(printer->space->text, got, max);
	is_cut |= shown < got;
	printer_put_either(printer, "", is_cut ? "{\"cut\": " : "");
	printer_put_string(printer, "\"");
	printer_put_all_escaped(printer, printer->space->text, shown, '"');
	printer_put_string(printer, "\"");
	if (is_cut)
		printer_put_either(printer, "...", "}");
}

static bool is_text(const struct shim_typetree_node *node)
{
	return node->size == 1 && (node->kind == SHIM_TYPE_CHARACTER ||
				   node->kind == SHIM_TYPE_SIGNED ||
				   node->kind == SHIM_TYPE_UNSIGNED);
}

/* --- pointers --- */

static void put_address(struct printer *printer, uintptr_t address)
{
	const struct print_job *job = printer->job;
	char *name = printer->space->name;
	uint64_t offset = 0;

	printer_put_either(printer, "", "\"");
	printer_put_hex(printer, address);
	if (job->name && !printer->is_plain &&
	    job->name(job->argument, address, name, PRINT_NAME_SIZE, &offset)) {
		printer_put_string(printer, " <");
		printer_put_name(printer, name);
		if (offset > 0) {
			printer_put_string(printer, "+");
			printer_put_decimal(printer, offset);
		}
		printer_put_string(printer, ">");
	}
	printer_put_either(printer, "", "\"");
}

static bool get_address(struct printer *printer, struct place place,
			uintptr_t *address)
{
	return printer_get(printer, place, address, sizeof(*address));
}

static void print_pointer(struct printer *printer,
			  const struct shim_typetree_node *node,
			  struct place place)
{
	uintptr_t address;

	if (!get_address(printer, place, &address))
		printer_put_unreadable(printer, place.address);
	else if (address == 0)
		printer_put_either(printer, "NULL", "null");
	else if (node->inner && is_text(&printer->nodes[node->inner]) &&
		 !printer->is_plain)
		print_text(printer, (struct place){ address, false }, TO_NUL,
			   TO_NUL);
	else
		put_address(printer, address);
}

static void print_reference(struct printer *printer,
			    const struct shim_typetree_node *node,
			    struct place place)
{
	struct place object = { 0, false };
	char byte;

	if (!get_address(printer, place, &object.address))
		printer_put_unreadable(printer, place.address);
	else if (object.address == 0)
		printer_put_either(printer, "NULL", "null");
	else if (printer->is_plain || !node->inner ||
		 printer->nodes[node->inner].kind == SHIM_TYPE_FUNCTION)
		put_address(printer, object.address);
	else if (!printer_get(printer, object, &byte, 1))
		printer_put_unreadable(printer, object.address);
	else
		print_node(printer, node->inner, object);
}

/* A pointer to a field is its offset; -1 is NULL, because 0 is the first field.  A
 * pointer to a function is its address, or an odd number if the function is virtual. */
static void print_member_pointer(struct printer *printer,
				 const struct shim_typetree_node *node,
				 struct place place)
{
	bool is_field = node->size == sizeof(uintptr_t);
	uintptr_t value;

	if (!get_address(printer, place, &value))
		printer_put_unreadable(printer, place.address);
	else if (value == (is_field ? UINTPTR_MAX : 0))
		printer_put_either(printer, "NULL", "null");
	else if (is_field)
		printer_put_decimal(printer, value);
	else
		put_address(printer, value);
}

/* --- lists --- */

static void print_elements(struct printer *printer, uint32_t inner,
			   uint64_t count, struct place place)
{
	uint64_t max = printer->is_long ? LONG_LIST : SHORT_LIST;

	for (uint64_t i = 0; i < count; i++) {
		if (i > 0)
			printer_put_string(printer, ", ");
		if (i == max || printer_is_full(printer)) {
			printer_put_either(printer, "...", "\"...\"");
			return;
		}
		print_node(printer, inner,
			   place_at(place, i * printer->nodes[inner].size));
	}
}

static void print_array(struct printer *printer,
			const struct shim_typetree_node *node,
			struct place place)
{
	const struct shim_typetree_node *inner = &printer->nodes[node->inner];

	if (!node->inner || node->elements == UINT64_MAX) {
		printer_put_either(printer, "[...]", "[\"...\"]");
		return;
	}
	if (node->kind == SHIM_TYPE_ARRAY &&
	    inner->kind == SHIM_TYPE_CHARACTER && inner->size == 1) {
		print_text(printer, place, TO_NUL, node->elements);
		return;
	}
	printer_put_string(printer, "[");
	print_elements(printer, node->inner, node->elements, place);
	printer_put_string(printer, "]");
}

static void put_field_name(struct printer *printer, const char *name)
{
	if (printer->is_json || name[0]) {
		printer_put_word(printer, name);
		printer_put_either(printer, " = ", ": ");
	}
}

static void print_field(struct printer *printer,
			const struct shim_typetree_part *part,
			struct place place)
{
	const struct shim_typetree_node *node = &printer->nodes[part->node];
	struct integer number;

	place = place_at(place, (uint64_t)part->value);
	put_field_name(printer, printer->names + part->name);
	if (part->bits == 0)
		print_node(printer, part->node, place);
	else if (number_get_bits(printer, part, place, number_is_signed(node),
				 &number))
		number_put(printer, node, number);
	else
		printer_put_unreadable(printer, place.address);
}

static void print_class(struct printer *printer,
			const struct shim_typetree_node *node,
			struct place place)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;

	if (node->is_cut) {
		printer_put_elision(printer);
		return;
	}
	printer_put_string(printer, "{");
	for (uint32_t i = 0; i < node->count; i++) {
		if (i > 0)
			printer_put_string(printer, ", ");
		if (printer_is_full(printer)) {
			printer_put_either(printer, "...", "\"...\": null");
			break;
		}
		print_field(printer, &parts[i], place);
	}
	printer_put_string(printer, "}");
}

/* --- classes of the C++ library --- */

static struct place part_place(const struct shim_typetree_part *part,
			       struct place place)
{
	return place_at(place, (uint64_t)part->value);
}

static void print_string_class(struct printer *printer,
			       const struct shim_typetree_node *node,
			       struct place place)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;
	struct place text = { 0, false }, length_place;
	struct integer length;

	if (printer->is_plain) {
		printer_put_elision(printer);
		return;
	}
	if (!get_address(printer, part_place(&parts[0], place),
			 &text.address)) {
		printer_put_unreadable(printer, place.address);
		return;
	}
	length_place = part_place(
		&parts[1],
		parts[1].flags & SHIM_TYPETREE_INDIRECT ? text : place);
	if (!number_get(printer, &printer->nodes[parts[1].node], length_place,
			&length))
		printer_put_unreadable(printer, length_place.address);
	else
		print_text(printer, text, length.low & ~(1ull << 63),
			   UINT64_MAX);
}

static void print_short_string_class(struct printer *printer,
				     const struct shim_typetree_node *node,
				     struct place place)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;
	struct integer size;

	if (printer->is_plain)
		printer_put_elision(printer);
	else if (!number_get(printer, &printer->nodes[parts[2].node],
			     part_place(&parts[2], place), &size))
		printer_put_unreadable(printer, place.address);
	else if (size.low & 1)
		print_string_class(printer, node, place);
	else
		print_text(printer, part_place(&parts[3], place),
			   (size.low & 0xff) >> 1,
			   node->size - (uint64_t)parts[3].value);
}

static void print_sequence(struct printer *printer,
			   const struct shim_typetree_node *node,
			   struct place place)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;
	uint64_t size = printer->nodes[node->inner].size, count;
	struct place first = { 0, false }, last = { 0, false };

	if (printer->is_plain) {
		printer_put_elision(printer);
		return;
	}
	if (!get_address(printer, part_place(&parts[0], place),
			 &first.address) ||
	    !get_address(printer, part_place(&parts[1], place),
			 &last.address)) {
		printer_put_unreadable(printer, place.address);
		return;
	}
	/* The container is not constructed yet, or is already destroyed. */
	if (last.address < first.address ||
	    (last.address - first.address) % size != 0) {
		printer_put_elision(printer);
		return;
	}
	count = (last.address - first.address) / size;
	printer_put_either(printer, "{size ", "{\"size\": ");
	printer_put_decimal(printer, count);
	printer_put_either(printer, count ? ": " : "", ", \"elements\": [");
	print_elements(printer, node->inner, count, first);
	printer_put_either(printer, "}", "]}");
}

static void print_optional(struct printer *printer,
			   const struct shim_typetree_node *node,
			   struct place place)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;
	struct integer is_there;

	if (!number_get(printer, &printer->nodes[parts[1].node],
			part_place(&parts[1], place), &is_there))
		printer_put_unreadable(printer, place.address);
	else if (is_there.low & 1)
		print_node(printer, parts[0].node,
			   part_place(&parts[0], place));
	else
		printer_put_either(printer, "nullopt", "null");
}

static bool print_form(struct printer *printer,
		       const struct shim_typetree_node *node,
		       struct place place)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;

	switch (node->form) {
	case SHIM_TYPETREE_TEXT:
		print_string_class(printer, node, place);
		break;
	case SHIM_TYPETREE_SHORT_TEXT:
		print_short_string_class(printer, node, place);
		break;
	case SHIM_TYPETREE_SEQUENCE:
		print_sequence(printer, node, place);
		break;
	case SHIM_TYPETREE_OPTIONAL:
		print_optional(printer, node, place);
		break;
	case SHIM_TYPETREE_WRAPPER:
		print_node(printer, parts[0].node,
			   part_place(&parts[0], place));
		break;
	default: return false;
	}
	return true;
}

/* --- any value --- */

static void print_kind(struct printer *printer,
		       const struct shim_typetree_node *node,
		       struct place place)
{
	switch (node->kind) {
	case SHIM_TYPE_VOID: printer_put_either(printer, "void", "null"); break;
	case SHIM_TYPE_BOOL:
	case SHIM_TYPE_CHARACTER:
	case SHIM_TYPE_SIGNED:
	case SHIM_TYPE_UNSIGNED:
	case SHIM_TYPE_ENUM: print_integer(printer, node, place); break;
	case SHIM_TYPE_FLOAT: print_floating(printer, node, place); break;
	case SHIM_TYPE_COMPLEX: print_complex(printer, node, place); break;
	case SHIM_TYPE_POINTER: print_pointer(printer, node, place); break;
	case SHIM_TYPE_REFERENCE: print_reference(printer, node, place); break;
	case SHIM_TYPE_MEMBER_POINTER:
		print_member_pointer(printer, node, place);
		break;
	case SHIM_TYPE_ARRAY:
	case SHIM_TYPE_VECTOR: print_array(printer, node, place); break;
	case SHIM_TYPE_STRUCT:
	case SHIM_TYPE_UNION: print_class(printer, node, place); break;
	case SHIM_TYPE_FUNCTION: put_address(printer, place.address); break;
	default: printer_put_word(printer, "(unknown)");
	}
}

static void print_node(struct printer *printer, uint32_t index,
		       struct place place)
{
	const struct shim_typetree_node *node = &printer->nodes[index];

	if (printer->depth == DEPTH_MAX) {
		printer_put_elision(printer);
		return;
	}
	printer->depth++;
	if (!print_form(printer, node, place))
		print_kind(printer, node, place);
	printer->depth--;
}

bool print_needs_space(const struct shim_typetree *tree)
{
	switch (shim_typetree_nodes(tree)->kind) {
	case SHIM_TYPE_BOOL:
	case SHIM_TYPE_CHARACTER:
	case SHIM_TYPE_SIGNED:
	case SHIM_TYPE_UNSIGNED:
	case SHIM_TYPE_ENUM: return false;
	default: return true;
	}
}

size_t print_write(const struct print_job *job, char *text, size_t size)
{
	struct printer printer = {
		.job = job,
		.space = job->space,
		.nodes = shim_typetree_nodes(job->tree),
		.parts = shim_typetree_parts(job->tree),
		.names = shim_typetree_text(job->tree),
		.is_json = job->flags & SHIM_PRINT_JSON,
		.is_plain = job->flags & SHIM_PRINT_PLAIN,
		.is_long = job->flags & SHIM_PRINT_LONG,
		.text = text,
		.size = size,
	};

	if (job->space)
		job->space->window_size = 0;
	if (size > 0)
		text[0] = '\0';
	print_node(&printer, 0, (struct place){ (uintptr_t)job->value, true });
	return printer.length + 1;
}
