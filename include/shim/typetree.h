/*
 * A type of the program as one piece of memory without a pointer, so that it
 * can be compared, kept and written to a file.
 *
 * shim_get_type_tree returns such a tree, the file N.values of a recording
 * contains trees (<shim/format.h>), and shim prints values by their trees.
 *
 *     struct shim_typetree
 *     struct shim_typetree_node[node_count]	nodes[0] is the type itself
 *     struct shim_typetree_part[part_count]	the parts of nodes
 *     char[text_size]				names, each with its NUL; the
 *						first is empty
 *
 * Example: the name of a type's first field.
 *
 *     #include <shim/typetree.h>
 *
 *     const char *first_field(const struct shim_typetree *tree);
 *     const char *first_field(const struct shim_typetree *tree)
 *     {
 *             const struct shim_typetree_node *type = shim_typetree_nodes(tree);
 *
 *             if (type->kind != SHIM_TYPE_STRUCT || type->count == 0)
 *                     return "";
 *             return shim_typetree_text(tree) +
 *                    shim_typetree_parts(tree)[type->first].name;
 *     }
 */
#ifndef SHIM_TYPETREE_H
#define SHIM_TYPETREE_H

#include <shim/values.h>
#include <stdbool.h>
#include <stdint.h>

#define SHIM_TYPETREE_NODES_MAX 4096
#define SHIM_TYPETREE_PARTS_MAX 16384
#define SHIM_TYPETREE_TEXT_MAX	(1u << 20)

/* The form in which a class is printed. */
enum shim_typetree_form {
	/* By its kind, a class by its fields. */
	SHIM_TYPETREE_PLAIN,
	/* std::string, std::string_view.  parts[0]: a pointer to characters; parts[1]:
	 * their number, in the object or, with SHIM_TYPETREE_INDIRECT, relative to
	 * the target of that pointer. */
	SHIM_TYPETREE_TEXT,
	/* std::vector.  parts[0]: a pointer to the first element; parts[1]: a pointer to
	 * the end of the last one; @inner: the type of an element. */
	SHIM_TYPETREE_SEQUENCE,
	/* std::unique_ptr, std::array.  parts[0] is printed instead of the class. */
	SHIM_TYPETREE_WRAPPER,
	/* std::optional.  parts[1] is a bool; if it is true, parts[0] is printed. */
	SHIM_TYPETREE_OPTIONAL,
	/* libc++'s std::string.  parts[2] is a byte.  If its lowest bit is set, the
	 * class is printed as SHIM_TYPETREE_TEXT.  Otherwise the other 7 bits are the
	 * number of characters, and parts[3] are the characters. */
	SHIM_TYPETREE_SHORT_TEXT,
};

/* The format of a number. */
enum shim_typetree_format {
	SHIM_TYPETREE_INTEGER,
	SHIM_TYPETREE_BINARY16,
	SHIM_TYPETREE_BINARY32,
	SHIM_TYPETREE_BINARY64,
	SHIM_TYPETREE_X87,
	SHIM_TYPETREE_BINARY128,
};

struct shim_typetree_node {
	uint64_t size;	       /* bytes */
	uint32_t name;	       /* offset in the text */
	uint32_t inner;	       /* node of the pointee or element; 0: none */
	uint32_t first, count; /* parts: fields, enumerators */
	uint64_t elements;     /* of an array or vector */
	uint8_t kind;	       /* enum shim_type_kind */
	uint8_t form;
	uint8_t format;	   /* of a number, or of each half of a complex one */
	uint8_t is_cut;	   /* the tree lacks its fields */
	uint8_t is_signed; /* of an enumeration */
	uint8_t is_flags; /* of an enumeration: its enumerators may be combined */
	uint8_t unused[2];
};

enum { SHIM_TYPETREE_INDIRECT = 1 };

/* A field: @value is its offset in bytes.  An enumerator: @value is its value. */
struct shim_typetree_part {
	int64_t value;
	uint32_t name;
	uint32_t node;
	uint8_t bit, bits; /* position and size of a bit field; 0: none */
	uint8_t flags;
	uint8_t unused[5];
	/* @flags & SHIM_TYPETREE_INDIRECT: @value is an offset from the target of the
	 * previous part, which is a pointer. */
};

struct shim_typetree {
	uint32_t size; /* bytes of the whole tree, a multiple of 8 */
	uint32_t node_count, part_count, text_size;
};

#ifdef __cplusplus
extern "C" {
#endif

static inline const struct shim_typetree_node *
shim_typetree_nodes(const struct shim_typetree *tree)
{
	return (const struct shim_typetree_node *)(tree + 1);
}

static inline const struct shim_typetree_part *
shim_typetree_parts(const struct shim_typetree *tree)
{
	return (const struct shim_typetree_part *)(shim_typetree_nodes(tree) +
						   tree->node_count);
}

static inline const char *shim_typetree_text(const struct shim_typetree *tree)
{
	return (const char *)(shim_typetree_parts(tree) + tree->part_count);
}

/* --- values whose text depends on their bytes alone --- */

/* Whether @part is within the value. */
static inline bool shim_typetree_has_part(const struct shim_typetree *tree,
					  const struct shim_typetree_node *node,
					  const struct shim_typetree_part *part)
{
	uint64_t size = part->bits ? (part->bit + part->bits + 7u) / 8 :
				     shim_typetree_nodes(tree)[part->node].size;

	return part->value >= 0 && size <= node->size &&
	       (uint64_t)part->value <= node->size - size;
}

static inline bool
shim_typetree_has_elements(const struct shim_typetree *tree,
			   const struct shim_typetree_node *node)
{
	uint64_t size = shim_typetree_nodes(tree)[node->inner].size;

	return !node->inner || node->elements == UINT64_MAX || size == 0 ||
	       node->elements <= node->size / size;
}

static inline bool
shim_typetree_is_plain_node(const struct shim_typetree *tree,
			    const struct shim_typetree_node *node)
{
	bool is_class = node->kind == SHIM_TYPE_STRUCT ||
			node->kind == SHIM_TYPE_UNION;

	for (uint32_t i = 0; is_class && i < node->count; i++)
		if (!shim_typetree_has_part(
			    tree, node,
			    &shim_typetree_parts(tree)[node->first + i]))
			return false;
	switch (node->kind) {
	case SHIM_TYPE_STRUCT:
	case SHIM_TYPE_UNION:
		return node->form == SHIM_TYPETREE_PLAIN ||
		       node->form == SHIM_TYPETREE_WRAPPER ||
		       node->form == SHIM_TYPETREE_OPTIONAL;
	case SHIM_TYPE_ARRAY:
	case SHIM_TYPE_VECTOR:
		return node->form == SHIM_TYPETREE_PLAIN &&
		       shim_typetree_has_elements(tree, node);
	case SHIM_TYPE_MEMBER_POINTER:
		return node->form == SHIM_TYPETREE_PLAIN &&
		       node->size == sizeof(uintptr_t);
	case SHIM_TYPE_BOOL:
	case SHIM_TYPE_CHARACTER:
	case SHIM_TYPE_SIGNED:
	case SHIM_TYPE_UNSIGNED:
	case SHIM_TYPE_FLOAT:
	case SHIM_TYPE_COMPLEX:
	case SHIM_TYPE_ENUM: return node->form == SHIM_TYPETREE_PLAIN;
	default: return false;
	}
}

/*
 * Whether the text of a value depends on its bytes alone: no address in it is
 * read or named, and all printed parts are within it.  @tree must be valid for
 * printing.
 */
static inline bool shim_typetree_is_plain(const struct shim_typetree *tree)
{
	for (uint32_t i = 0; i < tree->node_count; i++)
		if (!shim_typetree_is_plain_node(tree,
						 &shim_typetree_nodes(tree)[i]))
			return false;
	return true;
}

#ifdef __cplusplus
}
#endif
#endif
