/* The functions that were called: see functions.h. */
#include "budget/functions.h"

#include "path/path.h"
#include "path/threads.h"

#include <shim/builtin.h>

#include <shim/banned.h>

struct function *functions;
uint32_t functions_count;
static uint32_t room;
/* An open hash table with the numbers of the functions + 1, by address. */
static uint32_t *numbers;
static uint64_t numbers_shift;

static uint32_t *number_of(uint64_t address)
{
	uint64_t mask = (1ull << (64 - numbers_shift)) - 1;
	uint64_t i = address * 0x9e3779b97f4a7c15ull >> numbers_shift;

	while (numbers[i & mask] &&
	       functions[numbers[i & mask] - 1].address != address)
		i++;
	return &numbers[i & mask];
}

/* The numbers have twice as much room as the functions. */
static bool grow(void)
{
	uint32_t more_room = room ? room * 2 : 512;
	struct function *more;
	uint32_t *table;

	if (functions_count < room)
		return true;
	more = shim_memory_map(more_room * sizeof(*more));
	table = shim_memory_map(2 * more_room * sizeof(*table));
	if (!more || !table)
		return false;
	for (uint32_t i = 0; i < functions_count; i++)
		more[i] = functions[i];
	if (functions)
		shim_memory_discard(functions, room * sizeof(*more));
	if (numbers)
		shim_memory_discard(numbers, 2 * room * sizeof(*table));
	functions = more;
	numbers = table;
	room = more_room;
	numbers_shift = (unsigned)__builtin_clzll(more_room);
	for (uint32_t i = 0; i < functions_count; i++)
		*number_of(functions[i].address) = i + 1;
	return true;
}

static struct function *add(uint64_t address)
{
	uint32_t *number;

	if (!grow())
		return NULL;
	number = number_of(address);
	if (*number == 0) {
		functions[functions_count] = (struct function){
			.address = address
		};
		*number = ++functions_count;
	}
	return &functions[*number - 1];
}

/* The function of a node that may be switched off; 0 if it may not.  A function of an
 * unloaded image carries that image's generation. */
static uint64_t address_of_function(const struct shim_node *node)
{
	uint64_t function = address_of(node);

	return node->group || function > SHIM_NODE_ADDRESS || is_root(node) ?
		       0 :
		       function;
}

/* The node stores the function's number in @hits. */
struct function *functions_find(const struct shim_node *node)
{
	uint64_t address = address_of_function(node);
	uint32_t number = node->hits;

	return number > 0 && number <= functions_count &&
			       functions[number - 1].address == address ?
		       &functions[number - 1] :
		       NULL;
}

COLD struct function *functions_note(struct shim_node *node)
{
	const struct shim_node *parent = parent_of(node);
	uint64_t address = address_of_function(node);
	uint64_t caller_address = address_of_function(parent);
	struct function *function = address ? add(address) : NULL;
	struct function *caller;

	if (!function)
		return NULL;
	node->hits = (uint32_t)(function - functions) + 1;
	function->is_outermost |= is_root(parent);
	caller = caller_address ? add(caller_address) : NULL;
	if (caller)
		caller->has_callees = true;
	return functions_find(node);
}

/* Other profilers have nodes in the tree, too.  A node that is not finished yet begins with
 * zeros. */
static uint64_t size_of(const struct shim_node *node, uint64_t function)
{
	uint64_t size = shim_node_size(function);

	if (function >> 48 == SHIM_NODE_TYPE >> 48)
		return shim_type_node_size(
			((const struct shim_type_node *)node)->text_size);
	return size ? size : sizeof(*node);
}

static void visit_chunk(struct tree *tree, const struct chunk *chunk,
			uint64_t at, functions_visitor *visit)
{
	uint64_t end = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE);

	if (end > chunk->limit)
		end = chunk->limit;
	while (at + sizeof(struct shim_node) <= end) {
		struct shim_node *node = (struct shim_node *)at;
		uint64_t function = __atomic_load_n(&node->function,
						    __ATOMIC_ACQUIRE);

		at += size_of(node, function);
		if (function != 0 &&
		    (function & SHIM_NODE_SPECIAL) != SHIM_NODE_SPECIAL)
			visit(tree, node);
	}
}

void functions_each_node(functions_visitor *visit)
{
	for (struct tree *tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     tree; tree = tree->next) {
		unsigned count = __atomic_load_n(&tree->chunk_count,
						 __ATOMIC_ACQUIRE);

		for (unsigned i = 0; i < count && i < SHIM_FILE_CHUNKS; i++)
			visit_chunk(tree, &tree->chunks[i],
				    tree->chunks[i].first, visit);
	}
}
