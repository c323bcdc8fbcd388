/*
 * The table of functions that are switched off.
 *
 * Entries are never removed, so readers need no lock.  The budget adds entries.  Any
 * thread adds sites and nodes, with one atomic store each.
 */
#include "path/throttled.h"

#include "path/opening.h"

#include <shim/banned.h>

#define BLOCK  512 /* entries */
#define BLOCKS 512

struct shim_profiler_handle *tree_handle;
uint32_t tree_throttles;
uint32_t throttled_count;

/* The entries, and their index by address, with open addressing. */
static struct throttled *blocks[BLOCKS];
struct index {
	uint64_t shift;
	struct throttled *slot[];
};
static struct index *by_address;

/* Small private memory, for all threads. */
struct pool {
	uint64_t used;
	char bytes[65536 - sizeof(uint64_t)];
};
static struct pool *pool;

void *throttled_take(size_t size)
{
	struct pool *from = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
	uint64_t at = 0;

	if (from)
		at = __atomic_fetch_add(&from->used, size, __ATOMIC_RELAXED);
	if (from && at + size <= sizeof(from->bytes))
		return from->bytes + at;
	/* If several threads arrive at once, each maps a pool, and one pool is kept. */
	from = shim_memory_map(sizeof(*from));
	if (!from)
		return NULL;
	from->used = size;
	__atomic_store_n(&pool, from, __ATOMIC_RELEASE);
	return from->bytes;
}

/* --- the table --- */

struct throttled *throttled_get(uint32_t number)
{
	return &blocks[number / BLOCK][number % BLOCK];
}

static uint64_t slot_of(const struct index *index, uint64_t address)
{
	return address * 0x9e3779b97f4a7c15ull >> index->shift;
}

struct throttled *throttled_search(uint64_t address)
{
	const struct index *index = __atomic_load_n(&by_address,
						    __ATOMIC_ACQUIRE);
	struct throttled *found;
	uint64_t i, mask;

	if (!index)
		return NULL;
	mask = (1ull << (64 - index->shift)) - 1;
	i = slot_of(index, address);
	for (; (found = __atomic_load_n(&index->slot[i & mask],
					__ATOMIC_ACQUIRE)) != NULL;
	     i++)
		if (found->function == address)
			return found;
	return NULL;
}

static void insert_entry(struct index *index, struct throttled *throttled)
{
	uint64_t mask = (1ull << (64 - index->shift)) - 1;
	uint64_t i = slot_of(index, throttled->function);

	while (index->slot[i & mask])
		i++;
	__atomic_store_n(&index->slot[i & mask], throttled, __ATOMIC_RELEASE);
}

/* The old index stays mapped, because readers may use it. */
static bool grow_index(void)
{
	struct index *index = by_address;
	uint64_t shift = index ? index->shift : 64 - 7;

	if (index && throttled_count * 2ull < 1ull << (64 - shift))
		return true;
	shift--;
	index = shim_memory_map(sizeof(*index) +
				(sizeof(index->slot[0]) << (64 - shift)));
	if (!index)
		return false;
	index->shift = shift;
	for (uint32_t i = 0; i < throttled_count; i++)
		insert_entry(index, throttled_get(i));
	__atomic_store_n(&by_address, index, __ATOMIC_RELEASE);
	return true;
}

struct throttled *throttled_add(uint64_t function, uint32_t counter)
{
	uint32_t number = throttled_count;
	struct throttled *throttled;

	if (number / BLOCK == BLOCKS || !grow_index())
		return NULL;
	if (!blocks[number / BLOCK])
		blocks[number / BLOCK] = shim_memory_map(BLOCK *
							 sizeof(*throttled));
	if (!blocks[number / BLOCK])
		return NULL;
	throttled = throttled_get(number);
	throttled->function = function;
	throttled->epoch = throttled_begin_epoch();
	throttled->state = THROTTLED_OFF;
	throttled->counter = counter;
	throttled->is_counted = counter != 0;
	insert_entry(by_address, throttled);
	__atomic_store_n(&throttled_count, number + 1, __ATOMIC_RELEASE);
	return throttled;
}

/* --- nodes --- */

static void mark_node(struct shim_node *node, bool is_slow)
{
	if (is_slow)
		__atomic_fetch_or(&node->function, SHIM_NODE_EXACT,
				  __ATOMIC_RELEASE);
	else if (!is_in_doubt(node))
		__atomic_fetch_and(&node->function, ~SHIM_NODE_EXACT,
				   __ATOMIC_RELEASE);
}

void throttled_add_place(struct throttled *throttled, struct tree *tree,
			 struct shim_node *node)
{
	struct throttled_place *place = throttled_take(sizeof(*place));

	if (throttled_is_off(throttled))
		mark_node(node, true);
	if (!place)
		return;
	place->node = node;
	place->tree = tree;
	place->next = __atomic_load_n(&throttled->places, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&throttled->places, &place->next,
					    place, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

void throttled_node_made(struct tree *tree, struct shim_node *node)
{
	struct throttled *throttled = throttled_find(address_of(node));

	if (throttled && throttled_state(throttled) < THROTTLED_ON)
		throttled_add_place(throttled, tree, node);
}

void throttled_mark(const struct throttled *throttled, bool is_slow)
{
	for (const struct throttled_place *place =
		     __atomic_load_n(&throttled->places, __ATOMIC_ACQUIRE);
	     place; place = place->next)
		mark_node(place->node, is_slow);
}

/* --- call sites --- */

static bool is_of_enter(const struct throttled_site *site)
{
	return site->is_enter || site->is_mark;
}

/* Whether a list has the site, of which *@first more are to be left out. */
static bool is_listed(const struct throttled_site *site, bool only_enters,
		      uint32_t *first)
{
	if (site->gone || (only_enters && !is_of_enter(site)))
		return false;
	if (*first == 0)
		return true;
	(*first)--;
	return false;
}

static uint32_t list_sites(const struct throttled *throttled, bool only_enters,
			   uint32_t first, uint32_t room,
			   struct shim_hook_call *calls)
{
	const struct throttled_site *site = __atomic_load_n(&throttled->sites,
							    __ATOMIC_ACQUIRE);
	uint32_t count = 0;

	for (; site && count < room; site = site->next)
		if (is_listed(site, only_enters, &first))
			calls[count++] = (struct shim_hook_call){
				throttled->function, site->address
			};
	return count;
}

uint32_t throttled_list(const struct throttled *throttled, uint32_t first,
			uint32_t room, struct shim_hook_call *calls)
{
	return list_sites(throttled, false, first, room, calls);
}

uint32_t throttled_list_enters(const struct throttled *throttled,
			       uint32_t first, uint32_t room,
			       struct shim_counted_call *calls)
{
	const struct throttled_site *site = __atomic_load_n(&throttled->sites,
							    __ATOMIC_ACQUIRE);
	uint32_t count = 0;

	for (; site && count < room; site = site->next)
		if (is_listed(site, true, &first))
			calls[count++] = (struct shim_counted_call){
				site->address, throttled->function,
				throttled->burst_counter, 0
			};
	return count;
}

/* (A call there that its own function has off comes back to that.) */
void throttled_give_back(const struct throttled *throttled)
{
	const struct throttled_site *site = __atomic_load_n(&throttled->sites,
							    __ATOMIC_ACQUIRE);

	if (LIKELY(throttled_state(throttled) != THROTTLED_GONE))
		return;
	for (; site; site = site->next) {
		struct shim_hook_call call = {
			throttled->function & SHIM_NODE_ADDRESS, site->address
		};

		shim_profiler_switch_calls(tree_handle, 1, 1, &call);
	}
}

#define SWITCHED_MAX 256 /* sites in a batch */

static bool switch_listed(struct throttled *const *list, uint32_t count,
			  bool only_enters, bool on)
{
	static struct shim_hook_call calls[SWITCHED_MAX];
	uint32_t used = 0;
	bool all = true;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t first = 0, more;

		do {
			if (used == SWITCHED_MAX) {
				all &= shim_profiler_switch_calls(
					       tree_handle, on, used, calls) ==
				       SHIM_OK;
				used = 0;
			}
			more = list_sites(list[i], only_enters, first,
					  SWITCHED_MAX - used, calls + used);
			first += more;
			used += more;
		} while (used == SWITCHED_MAX);
	}
	if (used > 0)
		all &= shim_profiler_switch_calls(tree_handle, on, used,
						  calls) == SHIM_OK;
	for (uint32_t i = 0; !on && i < count; i++)
		throttled_give_back(list[i]);
	return all;
}

bool throttled_switch(struct throttled *const *list, uint32_t count, bool on)
{
	return switch_listed(list, count, false, on);
}

void throttled_end_counting(struct throttled *const *list, uint32_t count)
{
	switch_listed(list, count, true, false);
}

/* --- open calls --- */

bool throttled_is_stale(const struct shim_node *node, uint32_t epoch)
{
	const struct throttled *throttled = throttled_find(address_of(node));
	uint32_t state = throttled ? throttled_state(throttled) : THROTTLED_ON;

	if (state >= THROTTLED_ON)
		return false;
	return state <= THROTTLED_ARMING ||
	       (int32_t)(throttled->epoch - epoch) > 0;
}

/* --- images and forks --- */

static uint32_t unloads;

uint32_t throttled_unloads(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&unloads, __ATOMIC_SEQ_CST);
}

/* Either this finds an entry that another thread makes, or that thread finds the number
 * changed. */
void throttled_image_gone(uintptr_t low, uintptr_t high, uint32_t generation)
{
	__atomic_fetch_add(&unloads, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < throttled_count; i++) {
		struct throttled *throttled = throttled_get(i);

		for (struct throttled_site *site = throttled->sites; site;
		     site = site->next)
			site->gone |= site->address >= low &&
				      site->address < high;
		if (throttled->function < low || throttled->function >= high)
			continue;
		__atomic_store_n(&throttled->state, THROTTLED_GONE,
				 __ATOMIC_RELEASE);
		throttled->is_counted = false;
		throttled->function |= (uint64_t)generation << 48;
		if (throttled->node)
			throttled->node->address = throttled->function;
	}
}

/* The nodes belong to the parent. */
void throttled_forked(void)
{
	for (uint32_t i = 0; i < throttled_count; i++) {
		struct throttled *throttled = throttled_get(i);

		throttled->places = NULL;
		throttled->node = NULL;
	}
}

uint32_t throttled_begin_epoch(void)
{
	return tree_throttles + 1;
}

void throttled_end_epoch(void)
{
	__atomic_store_n(&tree_throttles, tree_throttles + 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&tree_starts, 1, __ATOMIC_RELEASE);
}
