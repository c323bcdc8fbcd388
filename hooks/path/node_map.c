/*
 * A hash table of nodes in the file of a tree.  Four words are the key.  Only the
 * tree's thread writes the table.  A signal handler that interrupts an insertion may
 * add a second node for the same key; the report adds the two.
 */
#include "path/node_map.h"
#include "path/nodes.h"
#include "path/assert.h"

#include <shim/banned.h>

static uint64_t slot_of(const struct node_map *table,
			const uint64_t key[NODE_MAP_WORDS])
{
	return (key[0] >> 6 ^ key[1] << 1 ^ key[2] << 7 ^ key[3]) *
		       0x9e3779b97f4a7c15ull >>
	       table->shift;
}

static uint64_t slots_of(const struct node_map *table)
{
	return 1ull << (64 - table->shift);
}

static struct node_map *make_table(uint64_t shift)
{
	size_t slots = (size_t)1 << (64 - shift);
	struct node_map *table = shim_memory_map(sizeof(*table) +
						 slots * sizeof(*table->slot));

	if (table)
		table->shift = shift;
	return table;
}

static void insert_node(struct node_map *table, struct map_node *node)
{
	uint64_t i = slot_of(table, node->key), mask = slots_of(table) - 1;

	/* Each search ends at a free slot. */
	PATH_ASSERT(table->used < mask);
	while (!shim_local_cas(&table->slot[i & mask], NULL, node))
		i++;
	table->used++;
}

/* The old table stays mapped, empty, because a signal handler may still use it. */
static bool grow_table(struct node_map **place)
{
	struct node_map *old = *place, *table;
	uint64_t slots = old ? slots_of(old) : 0;

	if (old && old->used * 2 < slots)
		return true;
	table = make_table(old ? old->shift - 1 : 64 - 6);
	if (!table)
		return old && old->used + 2 < slots;
	for (uint64_t i = 0; i < slots; i++)
		if (old->slot[i])
			insert_node(table, old->slot[i]);
	__atomic_store_n(place, table, __ATOMIC_RELEASE);
	if (slots > 512)
		shim_memory_discard((char *)old + 4096,
				    slots * sizeof(*old->slot) - 4096);
	return true;
}

struct map_node *node_map_find(const struct node_map *table,
			       const uint64_t key[NODE_MAP_WORDS])
{
	struct map_node *node;
	uint64_t i, mask;

	if (!table)
		return NULL;
	mask = slots_of(table) - 1;
	i = slot_of(table, key);
	for (; (node = table->slot[i & mask]) != NULL; i++)
		if (node->key[0] == key[0] && node->key[1] == key[1] &&
		    node->key[2] == key[2] && node->key[3] == key[3])
			return node;
	return NULL;
}

COLD struct map_node *node_map_add(struct node_map **table, struct tree *tree,
				   const uint64_t key[NODE_MAP_WORDS],
				   size_t size, uint64_t function)
{
	struct map_node *node;

	if (!grow_table(table)) {
		tree->lost_cause = SHIM_LOST_MEMORY;
		return NULL;
	}
	node = tree_take(tree, size);
	if (!node)
		return NULL;
	for (unsigned i = 0; i < NODE_MAP_WORDS; i++)
		node->key[i] = key[i];
	__atomic_store_n(&node->function, function, __ATOMIC_RELEASE);
	insert_node(*table, node);
	return node;
}

void node_map_image_gone(struct node_map *table, unsigned number, uintptr_t low,
			 uintptr_t high, uint64_t generation)
{
	for (uint64_t i = 0; table && i < slots_of(table); i++) {
		struct map_node *node = table->slot[i];

		if (node && node->key[number] >= low &&
		    node->key[number] < high)
			node->key[number] |= generation << 48;
	}
}
