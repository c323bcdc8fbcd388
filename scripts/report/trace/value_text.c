/*
 * Formats recorded values as text, with the code of shim/print that also prints
 * values inside programs.
 */
#include <print/print.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shim/format.h>

#include "trace/value_text.h"

/* An address in a recording cannot be followed. */
static bool is_address(const struct shim_typetree_node *node)
{
	return node->kind == SHIM_TYPE_POINTER &&
	       node->form == SHIM_TYPETREE_PLAIN;
}

bool value_is_valid(const void *memory, size_t size, uint32_t *value_size)
{
	const struct shim_typetree *tree = memory;
	const struct shim_typetree_node *node = shim_typetree_nodes(tree);

	if (!print_is_valid(tree, size) || node->size == 0 ||
	    node->size > VALUE_SIZE_MAX ||
	    (!is_address(node) && !shim_typetree_is_plain(tree)))
		return false;
	*value_size = (uint32_t)node->size;
	return true;
}

const char *value_missing_text(unsigned int reason)
{
	return shim_unavailable_text((int)reason);
}

void value_print(const void *tree, const unsigned char *value, char *text,
		 size_t room)
{
	static struct print_space space;
	struct print_job job = { .tree = tree,
				 .value = value,
				 .space = &space };

	print_write(&job, text, room);
}
