/*
 * Data of profilers for a node whose @extra another profiler uses.  The data is in a
 * hash table of the tree, by node and slot.
 *
 * Only its thread uses the table, but a signal handler may come at any time.  Then a
 * stored word may be lost: at worst a profiler describes the node twice, and a reader
 * adds both.
 */
#include "path/path.h"
#include "path/nodes.h"
#include "path/assert.h"

#include <shim/banned.h>

#define SLOTS_MIN 64

struct entry {
	uint64_t key; /* 0: free */
	uint64_t word;
};

struct node_data {
	uint64_t shift;
	uint64_t used;
	struct entry entry[];
};

/* Nodes are multiples of 64. */
_Static_assert(PATH_SLOTS <= 64, "a slot is in the low bits of a key");

static uint64_t key_of(const struct shim_node *node, unsigned slot)
{
	return (uint64_t)node | slot;
}

static uint64_t size_of(const struct node_data *data)
{
	return 1ull << (64 - data->shift);
}

/* The entry of @key, or the free entry for it. */
static struct entry *find_entry(struct node_data *data, uint64_t key)
{
	uint64_t i = key * 0x9e3779b97f4a7c15ull >> data->shift;
	uint64_t mask = size_of(data) - 1;

	for (;; i++) {
		struct entry *entry = &data->entry[i & mask];
		uint64_t found = __atomic_load_n(&entry->key, __ATOMIC_RELAXED);

		if (found == key || found == 0)
			return entry;
	}
}

uint64_t tree_find_data(const struct tree *tree, const struct shim_node *node,
			unsigned slot)
{
	struct node_data *data = tree->data;
	const struct entry *entry;

	if (!data)
		return 0;
	entry = find_entry(data, key_of(node, slot));
	return entry->key ? entry->word : 0;
}

static void add_entry(struct node_data *data, uint64_t key, uint64_t word)
{
	struct entry *entry;

	/* Each search ends at a free entry. */
	PATH_ASSERT(data->used < size_of(data) - 1);
	entry = find_entry(data, key);
	if (entry->key == 0) {
		/* A signal handler may have taken the entry for another key. */
		while (!shim_local_cas(&entry->key, NULL, (void *)key) &&
		       entry->key != key)
			entry = find_entry(data, key);
		data->used++;
	}
	entry->word = word;
}

/* The old table stays mapped, empty, because a signal handler may still use it. */
static struct node_data *grow_data(struct tree *tree)
{
	struct node_data *old = tree->data, *data;
	uint64_t size = old ? size_of(old) : 0;

	if (old && old->used * 2 < size)
		return old;
	size = size ? size * 2 : SLOTS_MIN;
	data = shim_memory_map(sizeof(*data) + size * sizeof(data->entry[0]));
	if (!data)
		return old && old->used + 2 < size / 2 ? old : NULL;
	data->shift = 64 - (uint64_t)__builtin_ctzll(size);
	for (uint64_t i = 0; i < size / 2 && old; i++)
		if (old->entry[i].key)
			add_entry(data, old->entry[i].key, old->entry[i].word);
	__atomic_store_n(&tree->data, data, __ATOMIC_RELEASE);
	if (old && size / 2 * sizeof(data->entry[0]) > 4096)
		shim_memory_discard((char *)old + 4096,
				    size / 2 * sizeof(data->entry[0]) - 4096);
	return data;
}

bool tree_set_data(struct tree *tree, const struct shim_node *node,
		   unsigned slot, uint64_t word)
{
	struct node_data *data = grow_data(tree);

	if (!data) {
		tree->lost_cause = SHIM_LOST_MEMORY;
		return false;
	}
	add_entry(data, key_of(node, slot), word);
	return true;
}
