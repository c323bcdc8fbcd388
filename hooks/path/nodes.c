/*
 * The nodes of paths: their memory, the hash table that finds them, and the end of
 * their calls.
 */
#include "path/cpu_time.h"
#include "path/opening.h"
#include "path/threads.h"
#include "path/throttled.h"
#include "path/assert.h"

#include <shim/builtin.h>

#include <shim/banned.h>

bool tree_add_chunk(struct tree *tree, void *memory, size_t size)
{
	struct chunk *chunk;

	if (tree->chunk_count == SHIM_FILE_CHUNKS)
		return false;
	chunk = &tree->chunks[tree->chunk_count++];
	chunk->next = chunk->first = (uint64_t)memory;
	chunk->limit = chunk->next + size;
	__atomic_store_n(&tree->chunk, chunk, __ATOMIC_RELEASE);
	return true;
}

void *tree_get_memory(struct tree *tree, size_t least, size_t *size,
		      enum shim_lost *cause)
{
	if (tree_has_file)
		return shim_record_grow(tree->record, least, size, cause);
	*cause = SHIM_LOST_MEMORY;
	*size = (size_t)65536
		<< (tree->chunk_count < 12 ? tree->chunk_count : 12);
	return shim_memory_map(*size);
}

/* Adds a chunk unless a signal handler has replaced @full already; False without
 * memory.  A try makes system calls, so lost calls try only at intervals. */
static COLD bool add_memory(struct tree *tree, const struct chunk *full,
			    size_t size)
{
	uint64_t time = now(), signals;
	void *memory;
	size_t got;

	if (time < tree->retry_clock)
		return false;
	signals = shim_signals_block();
	if (tree->chunk == full) {
		memory = tree_get_memory(tree, size, &got, &tree->lost_cause);
		if (!memory || !tree_add_chunk(tree, memory, got))
			tree->retry_clock = time + 20000 * tree_long_clock;
	}
	shim_signals_restore(signals);
	return tree->chunk != full;
}

void *tree_take(struct tree *tree, size_t size)
{
	struct chunk *chunk;
	uint64_t at;

	do {
		chunk = tree->chunk;
		at = shim_fetch_add(&chunk->next, size);
		if (at + size <= chunk->limit)
			return (void *)at;
	} while (add_memory(tree, chunk, size));
	return NULL;
}

/* --- the table of all paths --- */

struct table *tree_make_table(uint64_t shift)
{
	size_t slots = (size_t)1 << (64 - shift);
	struct table *table = shim_memory_map(sizeof(*table) +
					      slots * sizeof(*table->slot));

	if (table)
		table->shift = shift;
	return table;
}

static void insert_node(struct table *table, struct shim_node *node)
{
	uint64_t mask = (1ull << (64 - table->shift)) - 1;
	uint64_t i = hash(parent_of(node), address_of(node), node->group) >>
		     table->shift;

	/* Each search ends at a free slot. */
	PATH_ASSERT(table->used < mask);
	while (!shim_local_cas(&table->slot[i], NULL, node))
		i = (i + 1) & mask;
	table->used++;
}

/* The old table stays mapped, empty, because a signal handler may still use it.  At
 * worst a path gets a second node. */
static COLD bool grow_table(struct tree *tree)
{
	struct table *old = tree->table, *table;
	uint64_t slots = 1ull << (64 - old->shift);

	if (old->used * 2 < slots)
		return true;
	table = tree_make_table(old->shift - 1);
	if (!table)
		return old->used + 2 < slots;
	for (uint64_t i = 0; i < slots; i++)
		if (old->slot[i])
			insert_node(table, old->slot[i]);
	__atomic_store_n(&tree->table, table, __ATOMIC_RELEASE);
	shim_memory_discard((char *)old + 4096,
			    sizeof(*old) + slots * sizeof(*old->slot) - 4096);
	return true;
}

/* The cache never moves: interrupted code may have read its address, and any earlier
 * mask. The new entries are filled before the mask admits them. */
static void grow_cache(struct tree *tree)
{
	uint64_t entries = tree->cache_mask / sizeof(*tree->cache) + 1;
	uint64_t more = entries * 4;

	if (entries >= CACHE_MAX || tree->table->used * 2 < entries)
		return;
	if (more > CACHE_MAX)
		more = CACHE_MAX;
	PATH_ASSERT((entries & (entries - 1)) == 0);
	for (uint64_t i = entries; i < more; i++)
		tree->cache[i] = &tree_no_child;
	__atomic_store_n(&tree->cache_mask, cache_mask_of(more),
			 __ATOMIC_RELEASE);
	if (tree_hot.tree == tree && tree_hot.cache == tree->cache)
		__atomic_store_n(&tree_hot.cache_mask, cache_mask_of(more),
				 __ATOMIC_RELEASE);
}

static COLD bool describe_group(struct tree *tree, uint16_t group)
{
	for (const struct path_client **at = path_clients; *at; at++)
		if ((*at)->describe_group)
			return (*at)->describe_group(tree, group);
	return false;
}

/* @is_older: the node stands for one call and is not in the table (older.c). */
static COLD struct shim_node *make_node(struct tree *tree,
					struct shim_node *parent,
					uint64_t function, uint16_t group,
					bool is_older)
{
	uint64_t hits = 0;
	struct shim_node *node;

	shim_image_note(function & SHIM_NODE_ADDRESS);
	if (!grow_table(tree)) {
		tree->lost_cause = tree->closed ? SHIM_LOST_FORBIDDEN :
						  SHIM_LOST_MEMORY;
		return NULL;
	}
	if (group && !describe_group(tree, group))
		return NULL;
	if (tree_is_traced && !group) {
		hits = path_writer->choose(tree, parent, function);
		if (hits == PATH_LOST)
			return NULL;
	}
	if ((tree_mode == COARSE && !tree_is_cpu) || group)
		hits |= PATH_SLOW;
	node = tree_take(tree, sizeof(*node));
	if (!node)
		return NULL;
	/* The low bits of both pointers are hashed as 0, or hold a slot (node_data.c). */
	PATH_ASSERT((uint64_t)node % sizeof(*node) == 0);
	PATH_ASSERT(parent != &tree_no_call && parent != &tree_no_child);
	node->group = group;
	node->parent = (uint64_t)parent;
	node->coarse = tree_mode == COUNTS ? 2 : tree_is_cpu;
	node->hits = (uint32_t)hits;
	node->is_older = is_older;
	__atomic_store_n(&node->function,
			 function | (hits & PATH_SLOW ? SHIM_NODE_EXACT : 0),
			 __ATOMIC_RELEASE);
	/* Hooks must not find the function without the parent: the file may have been truncated
	 * after the parent was stored, and before the function was. */
	__atomic_store_n(&node->parent, (uint64_t)parent, __ATOMIC_RELEASE);
	throttled_node_made(tree, node);
	if (is_older)
		return node;
	insert_node(tree->table, node);
	grow_cache(tree);
	return node;
}

COLD struct shim_node *node_make(struct tree *tree, struct shim_node *parent,
				 uint64_t function, uint16_t group)
{
	return make_node(tree, parent, function, group, false);
}

COLD struct shim_node *
node_make_older(struct tree *tree, struct shim_node *parent, uint64_t function)
{
	return make_node(tree, parent, function, 0, true);
}

/* --- ending calls --- */

/*
 * The range that count_duration checks: durations in it change neither limit.
 */
#define LAST ((1ull << (SHIM_BUCKETS - 1)) - 1)

static uint64_t clamp_to_last(uint64_t duration)
{
	return duration < SHORTEST_COMMON ? SHORTEST_COMMON :
	       duration > LAST		  ? LAST :
					    duration;
}

COLD void node_widen(struct shim_extra_node *extra, uint64_t duration)
{
	unsigned bucket = 63 - (unsigned)__builtin_clzll(duration | 1);

	if (bucket >= SHIM_BUCKETS)
		bucket = SHIM_BUCKETS - 1;
	shim_local_add(shim_bucket(extra, bucket), 1);
	if (duration < extra->min)
		extra->min = duration;
	if (duration > extra->max)
		extra->max = duration;
	extra->range_low = clamp_to_last(extra->min);
	extra->range_span = clamp_to_last(extra->max) -
			    clamp_to_last(extra->min);
}

COLD void node_add_extra(struct shim_node *node, uint64_t duration)
{
	struct shim_extra_node *extra;
	uint64_t first = node->time - duration;
	struct tree *tree;

	if (first == 0 && node->calls <= 1)
		return;
	/* A vfork child has the data of its parent, but its own tree. */
	tree = tree_hot.shared ? tree_of_task(shim_thread_id()) : tree_hot.tree;
	if (!tree)
		return;
	extra = tree_take(tree, sizeof(*extra));
	if (!extra)
		return;
	extra->node = (uint64_t)node;
	extra->min = ~0ull;
	node_widen(extra, first);
	extra->last = duration;
	__atomic_store_n(&extra->function, SHIM_NODE_EXTRA, __ATOMIC_RELEASE);
	__atomic_store_n(&node->extra, (uint64_t)extra, __ATOMIC_RELEASE);
}

/* A signal handler also finds one of the two in @extra.  (The function is inline
 * because hooks need a small stack.) */
static inline __attribute__((always_inline)) void
add_self(struct shim_node *node, uint64_t time)
{
	uint64_t extra, more;

	do {
		extra = __atomic_load_n(&node->extra, __ATOMIC_RELAXED);
		if (extra && !(extra & SHIM_EXTRA_SELF)) {
			shim_local_add(
				&((struct shim_memory_node *)extra)->self,
				time);
			return;
		}
		more = (extra | SHIM_EXTRA_SELF) + 2 * time;
	} while (!shim_local_cas(&node->extra, (void *)extra, (void *)more));
}

static inline __attribute__((always_inline)) void
charge_tick(struct shim_node *node, uint64_t before, uint64_t tick,
	    uint64_t after)
{
	uint64_t last = tree_hot.clock;

	set_tick(tick, after);
	if (tree_hot.tree)
		tree_hot.tree->root->last = after;
	if (tree_mode != COARSE || last == 0 || before <= last ||
	    is_root(node) || tree_hot.shared)
		return;
	add_self(node, before - last);
	if (!node->group && !tree_is_cpu && node->hits < UINT32_MAX)
		node->hits++;
}

/* Returns whether profrun's tick is over, and the kernel's counts from now on.  The program's
 * time since profrun's last tick was not charged yet. */
static inline __attribute__((always_inline)) bool has_new_clock(void)
{
	const volatile uint64_t *before = tree_hot.tick;

	shim_clock_follow_tick(&tree_tick, &tree_hot.tick);
	return tree_hot.tick != before;
}

/* Does the work of node_ticked() by processor time.  Returns the excluded time.  It is
 * a separate function because hooks need a small stack. */
static COLD uint64_t cpu_ticked(struct shim_node *node, uint64_t before,
				uint64_t tick)
{
	uint64_t after = time_of_tick(tick);
	uint64_t waited = cpu_leave_out_waiting(tree_hot.clock, before);

	charge_tick(node, before - waited, tick, after);
	/* It may have lost its processor in the hook. */
	cpu_count_waiting(node, waited + cpu_leave_out_waiting(before, after));
	if (UNLIKELY(has_new_clock())) {
		tick = *tree_hot.tick;
		waited += cpu_ticked(node, time_of_tick(tick), tick);
	}
	return waited;
}

static COLD void follow_tick(struct shim_node *node)
{
	uint64_t tick, time;

	if (LIKELY(!has_new_clock()))
		return;
	tick = *tree_hot.tick;
	time = time_of_tick(tick);
	charge_tick(node, time, tick, time);
}

COLD void node_ticked(struct shim_node *node, uint64_t before, uint64_t after)
{
	if (UNLIKELY(tree_is_cpu)) {
		cpu_ticked(node, time_of_tick(before), after);
		return;
	}
	charge_tick(node, time_of_tick(before), after, time_of_tick(after));
	/* This call is last, so that the function needs no stack frame. */
	if (tree_tick)
		follow_tick(node);
}

COLD void node_enter_ticked(struct shim_node *parent, uint64_t before,
			    uint64_t after)
{
	node_ticked(parent, before, after);
	tree_hot.current->start = tree_hot.clock;
}

COLD void node_leave_ticked(struct shim_node *node, uint64_t start,
			    uint64_t before, uint64_t after)
{
	uint64_t waited = 0, end = time_of_tick(before);
	const volatile uint64_t *clock = tree_hot.tick;

	if (after != tree_hot.last)
		waited = cpu_ticked(node, end, after);
	if (UNLIKELY(tree_hot.tick != clock))
		end = tree_hot.clock;
	if (end > start && end - start > waited)
		shim_local_add(&node->time, end - start - waited);
}

COLD void node_choose_clock(struct shim_node *node)
{
	/* The fast path does not read groups, so their nodes keep SHIM_NODE_EXACT. */
	if (node->group || tree_is_cpu)
		return;
	if (node->function & SHIM_NODE_EXACT) {
		if (node->time < node->calls * tree_long_clock) {
			node->coarse = 1;
			node->function &= ~SHIM_NODE_EXACT;
		}
	} else if (node->time > node->calls * tree_long_clock * 2) {
		node->function |= SHIM_NODE_EXACT;
	}
}

/* The kernel's tick may be earlier than profrun's last one.  A call of a coroutine that was
 * left for another one has no start (cpu_leave_stack). */
static uint64_t between(uint64_t start, uint64_t end)
{
	return start != 0 && end > start ? end - start : 0;
}

uint64_t node_duration(struct shim_node *node)
{
	if (tree_mode == COUNTS || tree_mode == TRACED)
		return 0;
	if (is_exact(node))
		return now() - node->start;
	return between(node->start, time_of_tick(*tree_hot.tick));
}

void node_end_unwound(struct shim_node *node, struct ended_calls *unwound)
{
	bool is_timed = tree_mode == COARSE || tree_mode == EXACT;

	if (node->frame == 0 || is_root(node))
		return;
	if (unwound->calls++ == 0 && is_timed) {
		unwound->time = now();
		unwound->coarse_time = time_of_tick(*tree_hot.tick);
	}
	node_trust(node);
	close_call(node,
		   !is_timed	  ? 0 :
		   is_exact(node) ? unwound->time - node->start :
				    between(node->start, unwound->coarse_time),
		   true);
}

void node_count_unwound(const struct ended_calls *unwound)
{
	struct shim_meta *meta = unwound->calls ? shim_record_meta() : NULL;

	if (meta)
		__atomic_fetch_add(&meta->unwound, unwound->calls,
				   __ATOMIC_RELAXED);
}

struct shim_node *node_unwind(struct shim_node *node,
			      const struct shim_node *outer)
{
	struct ended_calls unwound = { 0 };

	while (node != outer && !is_root(node)) {
		node_end_unwound(node, &unwound);
		node = parent_of(node);
	}
	node_count_unwound(&unwound);
	return node;
}

bool node_is_below(const struct shim_node *node, const struct shim_node *wanted)
{
	while (node != wanted && !is_root(node))
		node = parent_of(node);
	return node == wanted;
}
