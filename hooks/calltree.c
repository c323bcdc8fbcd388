/*
 * calltree: for every path of calls, how often it was taken and how long.
 *
 * A thread's tree is made of nodes in its mapped file, one per path, and the
 * open calls are simply the nodes from `current` up to the root: a node is open
 * at most once, because recursion makes a deeper path.  So the shadow stack
 * needs no memory of its own and has no depth limit.
 *
 * Enter finds the child by a direct-mapped cache over (parent, function) and
 * verifies what it finds in the node itself, so the cache may be wrong or torn
 * by a signal at any time.  Behind it is a hash table of all paths; behind that
 * a new node is made.  Every step leaves a state that a signal handler may
 * build on: at worst it makes a second node for the same path, and the reader
 * adds them up.
 *
 * "Is the child right, and is the stack pointer below the parent's?" is all the
 * fast path asks.  A new thread, a thread without memory, one that shares its
 * thread-local data, a jump, another stack: each of them makes the answer no.
 *
 * Clocks.  Exact reads the processor's counter on both ends.  Adaptive does so
 * only for paths whose calls are long; the rest read the kernel's tick, which
 * costs a load: the difference of two ticks is 0 nearly always, and right on
 * average.
 */
#include <shim/cpu.h>
#include <shim/hooks.h>
#include <shim/record.h>

#include <shim/banned.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HOT	    __attribute__((hot, aligned(64)))
#define COLD	    __attribute__((cold, noinline))

/* A path is timed exactly while its calls take at least this long on average,
 * looked at every 32 calls; twice as long brings it back. */
#define LONG_NS 500

#define CACHE_MIN 512
#define CACHE_MAX 16384
#define JUMPS	  64

enum clock { COUNTS, COARSE, EXACT };

struct stack {
	uintptr_t low, high;
	struct stack *next;
	struct shim_node *current;	/* while another stack is in use */
	struct shim_node *base;		/* its frames lie above this node */
	bool is_signal;
	struct stack *interrupted;	/* is_signal: the one below it */
};

struct table {
	uint64_t shift;
	uint64_t used;
	struct shim_node *slot[];
};

/* Where new nodes come from. */
struct chunk {
	uint64_t next;		/* address */
	uint64_t limit;
};

struct jump {
	const void *buffer;
	struct shim_node *node;
	uintptr_t sp;
};

/* One thread's tree.  When its thread is gone the next new one goes on with the
 * file, under a root of its own. */
struct tree {
	struct tree *next;
	uint32_t tid;
	bool careful;			/* every event takes the slow path */
	bool closed;			/* no system calls any more */
	struct shim_record *record;
	struct chunk *chunk;
	struct table *table;
	struct shim_node **cache;
	uint64_t cache_mask;
	struct shim_thread_node *root;
	struct shim_node *current;	/* used when hot.current is not */
	struct stack *stack;
	struct stack *stacks;
	struct stack main_stack;
	uint64_t landed;	/* frame where the last exception went on, or 0 */
	/* No memory: calls from lost_sp down are counted and nothing else. */
	uintptr_t lost_sp;
	uint64_t lost_depth;
	enum shim_lost lost_cause;
	uint64_t retry_clock;
	struct chunk chunks[SHIM_FILE_CHUNKS];
	unsigned chunk_count;
	char *pool, *pool_end;		/* struct stack come from here */
	struct jump jumps[JUMPS];
};

/* What the fast path reads, per thread. */
struct hot {
	struct shim_node *current;
	uintptr_t low;			/* of the stack in use */
	uint64_t cache_mask;
	struct shim_node **cache;
	const volatile uint64_t *tick;
	struct tree *tree;
	uint64_t retry_clock;		/* no tree could be made; until then */
	unsigned shared;		/* by how many reasons other tasks use
					 * this very data: a clone without its
					 * own, a vfork child */
	enum shim_lost cause;
	bool no_clock;			/* shim_clock() would fault here */
};

/* Nobody's node: no function, no room below it. */
static struct shim_node nobody = { .function = ~0ull };
static struct shim_node *no_cache[1] = { &nobody };

static __thread struct hot hot = { .current = &nobody, .cache = no_cache };

static struct tree *trees;
static enum clock mode;
static const volatile uint64_t *tick;
static uint64_t tick_length;
static uint64_t long_clock;		/* LONG_NS in clock units */

/* The exact clock, off the fast path. */
static inline uint64_t now(void)
{
	if (UNLIKELY(hot.no_clock))
		return tick ? *tick : 0;
	return shim_clock();
}

/* --- nodes --- */

static inline uint64_t address_of(const struct shim_node *node)
{
	return node->function & ~SHIM_NODE_EXACT;
}

static inline struct shim_node *parent_of(const struct shim_node *node)
{
	return (struct shim_node *)node->parent;
}

static inline bool is_root(const struct shim_node *node)
{
	return node->parent == 0;
}

static inline uint64_t index_of(const struct shim_node *parent,
				uint64_t function, uint64_t mask)
{
	return (function >> 4 ^ (uintptr_t)parent >> 6) & mask;
}

static inline uint64_t hash(const struct shim_node *parent, uint64_t function)
{
	return ((uintptr_t)parent >> 6 ^ function) * 0x9e3779b97f4a7c15ull;
}

static bool add_chunk(struct tree *tree, void *memory, size_t size)
{
	struct chunk *chunk;

	if (tree->chunk_count == SHIM_FILE_CHUNKS)
		return false;
	chunk = &tree->chunks[tree->chunk_count++];
	chunk->next = (uint64_t)memory;
	chunk->limit = chunk->next + size;
	__atomic_store_n(&tree->chunk, chunk, __ATOMIC_RELEASE);
	return true;
}

/* @size zeroed bytes of the file; NULL sets lost_cause. */
static void *take(struct tree *tree, size_t size)
{
	for (;;) {
		struct chunk *chunk = tree->chunk;
		uint64_t at = shim_fetch_add(&chunk->next, size);
		uint64_t time;
		uint64_t signals;
		void *memory;
		size_t got;

		if (at + size <= chunk->limit)
			return (void *)at;
		/* Asking costs system calls: not for every call we lose. */
		time = now();
		if (time < tree->retry_clock)
			return NULL;
		signals = shim_signals_block();
		if (tree->chunk == chunk) {
			memory = shim_record_grow(tree->record, size, &got,
						  &tree->lost_cause);
			if (!memory || !add_chunk(tree, memory, got))
				tree->retry_clock =
					time + 20000 * long_clock;
		}
		shim_signals_restore(signals);
		if (tree->chunk == chunk)
			return NULL;
	}
}

/* --- the table of all paths --- */

static struct table *make_table(uint64_t shift)
{
	size_t slots = (size_t)1 << (64 - shift);
	struct table *table =
		shim_memory(sizeof(*table) + slots * sizeof(*table->slot));

	if (table)
		table->shift = shift;
	return table;
}

static struct shim_node *find(const struct table *table,
			      struct shim_node *parent, uint64_t function)
{
	uint64_t mask = (1ull << (64 - table->shift)) - 1;
	uint64_t i = hash(parent, function) >> table->shift;
	struct shim_node *node;

	while ((node = table->slot[i]) != NULL) {
		if (parent_of(node) == parent && address_of(node) == function)
			return node;
		i = (i + 1) & mask;
	}
	return NULL;
}

static void insert(struct table *table, struct shim_node *node)
{
	uint64_t mask = (1ull << (64 - table->shift)) - 1;
	uint64_t i = hash(parent_of(node), address_of(node)) >> table->shift;

	while (!shim_replace(&table->slot[i], NULL, node))
		i = (i + 1) & mask;
	table->used++;
}

/* A handler may still read, or add to, the old table: it stays mapped, empty,
 * and at worst a path gets a second node. */
static bool make_table_room(struct tree *tree)
{
	struct table *old = tree->table, *table;
	uint64_t slots = 1ull << (64 - old->shift);

	if (old->used * 2 < slots)
		return true;
	table = make_table(old->shift - 1);
	if (!table)
		return old->used + 2 < slots;
	for (uint64_t i = 0; i < slots; i++)
		if (old->slot[i])
			insert(table, old->slot[i]);
	__atomic_store_n(&tree->table, table, __ATOMIC_RELEASE);
	shim_memory_empty((char *)old + 4096,
			  sizeof(*old) + slots * sizeof(*old->slot) - 4096);
	return true;
}

/* The cache never moves: code that a handler interrupted may hold its address
 * with any mask there was.  More of it is filled, then the mask admits it. */
static void grow_cache(struct tree *tree)
{
	uint64_t entries = tree->cache_mask + 1, more = entries * 4;

	if (entries >= CACHE_MAX || tree->table->used * 2 < entries)
		return;
	if (more > CACHE_MAX)
		more = CACHE_MAX;
	for (uint64_t i = entries; i < more; i++)
		tree->cache[i] = &nobody;
	__atomic_store_n(&tree->cache_mask, more - 1, __ATOMIC_RELEASE);
	if (hot.tree == tree && hot.cache == tree->cache)
		__atomic_store_n(&hot.cache_mask, more - 1, __ATOMIC_RELEASE);
}

static COLD struct shim_node *make_node(struct tree *tree,
					struct shim_node *parent,
					uint64_t function)
{
	struct shim_node *node;

	shim_image_note(function & SHIM_NODE_ADDRESS);
	if (!make_table_room(tree)) {
		tree->lost_cause = tree->closed ? SHIM_LOST_FORBIDDEN :
						  SHIM_LOST_MEMORY;
		return NULL;
	}
	node = take(tree, sizeof(*node));
	if (!node)
		return NULL;
	node->parent = (uint64_t)parent;
	node->coarse = mode == COUNTS ? 2 : 0;
	__atomic_store_n(&node->function,
			 mode == COARSE ? function | SHIM_NODE_EXACT : function,
			 __ATOMIC_RELEASE);
	insert(tree->table, node);
	grow_cache(tree);
	return node;
}

static struct shim_node *find_or_make(struct tree *tree,
				      struct shim_node *parent,
				      uint64_t function)
{
	struct shim_node *node = find(tree->table, parent, function);

	if (UNLIKELY(!node))
		node = make_node(tree, parent, function);
	if (LIKELY(node != NULL))
		tree->cache[index_of(parent, function, tree->cache_mask)] =
			node;
	return node;
}

/* Where the child would be.  The mask is read before the cache: a handler that
 * comes between can only have put a larger cache there. */
static inline struct shim_node **cache_place(const struct shim_node *parent,
					     uint64_t function)
{
	uint64_t mask = *(volatile uint64_t *)&hot.cache_mask;
	struct shim_node **cache = *(struct shim_node **volatile *)&hot.cache;

	return &cache[index_of(parent, function, mask)];
}

/* --- opening and closing one call --- */

static inline bool is_exact(const struct shim_node *node)
{
	return mode == EXACT || (node->function & SHIM_NODE_EXACT);
}

static inline void open_call(struct shim_node *node, uint64_t frame)
{
	node->frame = frame;
	shim_add(&node->calls, 1);
	if (mode != COUNTS)
		node->start = is_exact(node) ? now() : *tick;
}

/* Where @sp is in its stack.  0 says the call is closed. */
static inline uint64_t frame_of(uintptr_t sp, uintptr_t low)
{
	return sp - low;
}

static inline unsigned bucket_of(uint64_t duration)
{
	unsigned bucket = 63 - (unsigned)__builtin_clzll(duration | 1);

	return bucket < SHIM_BUCKETS ? bucket : SHIM_BUCKETS - 1;
}

/*
 * Durations of calltree:exact.  A call's duration waits in its extra node for
 * the next one: the counter takes long to read, and what depends on it makes
 * the next reading wait.  The exchange happens while the node is current, so
 * no handler can come between with a call of the same node.
 */
static inline uint64_t exchange_last(struct shim_extra_node *extra,
				     uint64_t duration)
{
	uint64_t last = extra->last;

	extra->last = duration;
	return last;
}

static inline void count_duration(struct shim_extra_node *extra,
				  uint64_t duration)
{
	shim_add(&extra->bucket[bucket_of(duration)], 1);
	if (UNLIKELY(duration < extra->min))
		extra->min = duration;
	if (UNLIKELY(duration > extra->max))
		extra->max = duration;
}

/* The first call needs none: the path's time is its duration. */
static COLD void make_extra(struct shim_node *node, uint64_t duration)
{
	struct shim_extra_node *extra;
	uint64_t first = node->time - duration;

	if (first == 0 && node->calls <= 1)
		return;
	if (!hot.tree)
		return;
	extra = take(hot.tree, sizeof(*extra));
	if (!extra)
		return;
	extra->node = (uint64_t)node;
	extra->min = extra->max = first;
	extra->bucket[bucket_of(first)]++;
	extra->last = duration;
	extra->has_last = 1;
	__atomic_store_n(&extra->function, SHIM_NODE_EXTRA, __ATOMIC_RELEASE);
	__atomic_store_n(&node->extra, (uint64_t)extra, __ATOMIC_RELEASE);
}

/* Long on average?  The other clock from the next call on. */
static COLD void choose_clock(struct shim_node *node)
{
	if (node->function & SHIM_NODE_EXACT) {
		if (node->time < node->calls * long_clock) {
			node->coarse = 1;
			node->function &= ~SHIM_NODE_EXACT;
		}
	} else if (node->time > node->calls * long_clock * 2) {
		node->function |= SHIM_NODE_EXACT;
	}
}

/* Ends a call.  Its parent is current already, so a handler may open the same
 * node meanwhile: @duration was worked out before that. */
static inline void close_call(struct shim_node *node, uint64_t duration)
{
	node->frame = 0;
	shim_add(&node->time, duration);
	if (mode == EXACT) {
		struct shim_extra_node *extra =
			(struct shim_extra_node *)node->extra;

		if (extra)
			count_duration(extra, duration);
		else
			make_extra(node, duration);
	} else if (mode == COARSE && (node->function & SHIM_NODE_EXACT) &&
		 (node->calls & 31) == 0)
		choose_clock(node);
}

static uint64_t duration_of(struct shim_node *node)
{
	uint64_t time;

	if (mode == COUNTS)
		return 0;
	if (is_exact(node))
		return now() - node->start;
	time = *tick;
	if (time != node->start)
		node->hits++;
	return time - node->start;
}

static void count_unwound(void)
{
	struct shim_meta *meta = shim_record_meta();

	if (meta)
		__atomic_fetch_add(&meta->unwound, 1, __ATOMIC_RELAXED);
}

static void end_unwound(struct shim_node *node)
{
	if (node->frame == 0 || is_root(node))
		return;
	close_call(node, duration_of(node));
	count_unwound();
}

static bool is_open(const struct shim_node *node,
		    const struct shim_node *wanted)
{
	while (node != wanted && !is_root(node))
		node = parent_of(node);
	return node == wanted;
}

/* --- stacks --- */

/* What a stack pointer points at was pushed last: it may be the upper end of
 * its stack and cannot be the lower one. */
static inline bool contains(const struct stack *stack, uintptr_t sp)
{
	return sp - 1 - stack->low < stack->high - stack->low;
}

/* The pieces of memory that trees keep for themselves. */
static void *take_private(struct tree *tree, size_t size)
{
	char *memory = tree->pool;

	size = (size + 15) & ~(size_t)15;
	if ((size_t)(tree->pool_end - memory) < size) {
		memory = shim_memory(16384);
		if (!memory)
			return NULL;
		tree->pool_end = memory + 16384;
	}
	tree->pool = memory + size;
	return memory;
}

/* A root at the upper end of its stack: whatever lies above is elsewhere. */
static struct shim_node *make_root(struct tree *tree, const struct stack *stack,
				   bool coroutine)
{
	struct shim_thread_node *root = take(tree, sizeof(*root));

	if (!root)
		return NULL;
	root->frame = frame_of(stack->high, stack->low);
	root->start = now();
	root->coroutine = coroutine;
	shim_thread_name(root->name);
	__atomic_store_n(&root->function, SHIM_NODE_THREAD | tree->tid,
			 __ATOMIC_RELEASE);
	return (struct shim_node *)root;
}

static struct stack *add_stack(struct tree *tree, uintptr_t low,
			       uintptr_t high)
{
	struct stack *stack = take_private(tree, sizeof(*stack));

	if (!stack)
		return NULL;
	*stack = (struct stack){ .low = low, .high = high,
				 .next = tree->stacks };
	tree->stacks = stack;
	return stack;
}

static struct stack *known_stack(struct tree *tree, uintptr_t sp)
{
	struct stack *best = NULL;

	/* A coroutine's stack may lie in a larger one: the smallest counts. */
	for (struct stack *stack = tree->stacks; stack; stack = stack->next)
		if (contains(stack, sp) &&
		    (!best || stack->high - stack->low <
				      best->high - best->low))
			best = stack;
	return best;
}

/* Ends the calls from @node on, up to @outer, which stays open.  Only local
 * state: a handler that comes between finds the thread as it was. */
static struct shim_node *unwind(struct shim_node *node,
				const struct shim_node *outer)
{
	while (node != outer && !is_root(node)) {
		end_unwound(node);
		node = parent_of(node);
	}
	return node;
}

static void give_root(struct tree *tree, struct stack *stack)
{
	stack->base = make_root(tree, stack, true);
	if (!stack->base)
		stack->base = tree->main_stack.base;
	stack->current = stack->base;
}

/* The stack that holds @sp, made known if it was not. */
static struct stack *find_stack(struct tree *tree, uintptr_t sp)
{
	uintptr_t low = sp & ~4095ul, high = low + 4096;
	enum shim_stack kind = shim_stack_find(sp, &low, &high);
	struct stack *stack = known_stack(tree, sp);

	if (stack && (kind == SHIM_STACK_THREAD || stack->is_signal))
		return stack;
	stack = add_stack(tree, low, high);
	if (!stack)
		return tree->stack;
	if (kind == SHIM_STACK_SIGNAL) {
		stack->is_signal = true;
	} else {
		give_root(tree, stack);
		/* Nobody told us of it, so nobody will tell us when the thread
		 * leaves it: look at every call from now on. */
		tree->careful = true;
	}
	return stack;
}

/* Makes the stack that holds @sp the one in use.  Signals blocked. */
static void switch_stack(struct tree *tree, uintptr_t sp)
{
	struct stack *from = tree->stack, *to = known_stack(tree, sp);

	if (!to || to->is_signal)
		to = find_stack(tree, sp);
	if (to == from)
		return;
	/* The handler is over, or it jumped out of there. */
	if (from->is_signal && is_open(tree->current, from->base))
		tree->current = unwind(tree->current, from->base);
	from->current = tree->current;
	if (to->is_signal) {
		to->base = tree->current;
		to->interrupted = from;
	} else if (!from->is_signal || to->current != from->base) {
		tree->current = to->current;
	}
	tree->stack = to;
}

/* --- a thread and its tree --- */

/*
 * On a signal's stack the fast path is off: its frames cannot be compared with
 * those it interrupted, and its end must be noticed with the next event.
 */
static void publish(struct tree *tree, struct stack *stack,
		    struct shim_node *current)
{
	tree->stack = stack;
	tree->current = current;
	if (hot.shared)
		return;
	if (!stack->is_signal)
		hot.low = stack->low;
	/* In this order: a mask fits its cache and whatever comes after. */
	__atomic_store_n(&hot.cache, tree->cache, __ATOMIC_RELEASE);
	__atomic_store_n(&hot.cache_mask, tree->cache_mask, __ATOMIC_RELEASE);
	hot.tick = tick;
	hot.tree = tree;
	if (tree->careful || tree->lost_depth || stack->is_signal)
		current = &nobody;
	__atomic_store_n(&hot.current, current, __ATOMIC_RELEASE);
}

/* The other way: what the fast path did since.  If it did anything, a handler
 * that had its own stack is over, whatever it left behind. */
static struct shim_node *collect(struct tree *tree)
{
	if (hot.tree == tree && hot.current != &nobody) {
		tree->current = hot.current;
		if (tree->stack->is_signal)
			tree->stack = tree->stack->interrupted;
	}
	return tree->current;
}

static bool begin_thread(struct tree *tree, uintptr_t sp)
{
	struct stack *stack = &tree->main_stack;

	*stack = (struct stack){ .low = sp & ~4095ul };
	stack->high = stack->low + 4096;
	shim_stack_find(sp, &stack->low, &stack->high);
	stack->base = make_root(tree, stack, false);
	if (!stack->base)
		return false;
	stack->current = stack->base;
	tree->root = (struct shim_thread_node *)stack->base;
	tree->stack = tree->stacks = stack;
	tree->current = stack->current;
	tree->careful = false;
	tree->lost_depth = 0;
	return true;
}

static struct tree *make_tree(uint32_t tid, uintptr_t sp, enum shim_lost *cause)
{
	struct tree *tree = shim_memory(sizeof(*tree));
	void *memory;
	size_t size;

	*cause = SHIM_LOST_MEMORY;
	if (!tree)
		return NULL;
	tree->tid = tid;
	tree->table = make_table(64 - 9);
	tree->cache = shim_memory(CACHE_MAX * sizeof(*tree->cache));
	tree->cache_mask = CACHE_MIN - 1;
	if (!tree->table || !tree->cache)
		return NULL;
	for (unsigned i = 0; i < CACHE_MIN; i++)
		tree->cache[i] = &nobody;
	tree->record = shim_record_open("calltree", &memory, &size, cause);
	if (!tree->record)
		return NULL;
	add_chunk(tree, memory, size);
	if (!begin_thread(tree, sp))
		return NULL;
	tree->next = __atomic_load_n(&trees, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&trees, &tree->next, tree, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return tree;
}

/* A tree whose thread is gone, or that was this task's in a former life. */
static struct tree *reuse_tree(uint32_t tid, uintptr_t sp)
{
	for (struct tree *tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     tree; tree = tree->next) {
		uint32_t owner = __atomic_load_n(&tree->tid, __ATOMIC_RELAXED);

		if (owner != tid && shim_thread_is_alive(owner))
			continue;
		if (!__atomic_compare_exchange_n(&tree->tid, &owner, tid, false,
						 __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		/* Calls it left open died with it. */
		if (!begin_thread(tree, sp))
			continue;
		return tree;
	}
	return NULL;
}

static struct tree *tree_of(uint32_t tid)
{
	for (struct tree *tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     tree; tree = tree->next)
		if (__atomic_load_n(&tree->tid, __ATOMIC_RELAXED) == tid)
			return tree;
	return NULL;
}

/* The calling task's tree; NULL: there is none and the call is lost. */
static COLD struct tree *get_tree(uintptr_t sp)
{
	struct tree *tree = hot.shared ? tree_of(shim_thread_id()) : hot.tree;
	uint64_t signals;
	uint32_t tid;

	if (tree)
		return tree;
	if (hot.retry_clock && now() < hot.retry_clock)
		return NULL;
	signals = shim_signals_block();
	tid = shim_thread_id();
	hot.cause = SHIM_LOST_FORBIDDEN;
	if (tid) {
		tree = reuse_tree(tid, sp);
		if (!tree)
			tree = make_tree(tid, sp, &hot.cause);
	}
	if (tree) {
		publish(tree, tree->stack, tree->current);
		if (!hot.shared)
			shim_thread_watch();
	} else {
		hot.retry_clock = now() + 20000 * long_clock;
	}
	shim_signals_restore(signals);
	return tree;
}

/* --- what the fast path could not do --- */

static void lose_call(struct tree *tree, uintptr_t sp)
{
	if (tree->lost_depth++ == 0)
		tree->lost_sp = sp;
	shim_add(&tree->root->lost[tree->lost_cause], 1);
}

/* Is the calling task another one than the tree's, with its thread-local data?
 * Then all such tasks take the slow path for good and are told apart by tid. */
static bool detect_sharing(struct tree *tree)
{
	uint32_t tid;

	if (hot.shared)
		return false;
	tid = shim_thread_id();
	if (tid == 0 || tid == tree->tid)
		return false;
	collect(tree);
	hot.shared = 1;
	hot.current = &nobody;
	return true;
}

/* The stack pointer is outside the stack in use: find out why. */
static COLD struct tree *settle(struct tree *tree, uintptr_t sp)
{
	uint64_t signals = shim_signals_block();

	if (detect_sharing(tree)) {
		tree = get_tree(sp);
		if (!tree || contains(tree->stack, sp)) {
			shim_signals_restore(signals);
			return tree;
		}
	}
	collect(tree);
	switch_stack(tree, sp);
	publish(tree, tree->stack, tree->current);
	shim_signals_restore(signals);
	return tree;
}

/* What an event finds: its tree, its stack, the call it happens in.  Held in
 * here, because a handler may change what the tree says at any moment, and
 * what it leaves there is for the next event to find. */
struct place {
	struct tree *tree;
	struct stack *stack;
	struct shim_node *current;
};

static inline bool find_place(struct place *place, struct tree *tree,
			      uintptr_t sp)
{
	place->tree = tree;
	if (!tree)
		return false;
	place->current = collect(tree);
	place->stack = tree->stack;
	/* Again, if a handler on another stack came after it was settled. */
	for (int i = 0; i < 100 && UNLIKELY(!contains(place->stack, sp)); i++) {
		tree = place->tree = settle(tree, sp);
		if (!tree)
			return false;
		place->current = collect(tree);
		place->stack = tree->stack;
	}
	return true;
}

/* Calls that a jump or an exception left open: their frames lie below where
 * the stack pointer is now.  (Frame 0: an enter that this handler came into.) */
static struct shim_node *drop_stale(const struct stack *stack,
				    struct shim_node *node, uintptr_t sp)
{
	uint64_t frame = frame_of(sp, stack->low);

	while (node != stack->base && !is_root(node) && node->frame != 0 &&
	       node->frame < frame) {
		end_unwound(node);
		node = parent_of(node);
	}
	return node;
}

/*
 * A function inlined into the one that caught an exception shares its frame, so
 * nobody can tell that it ended, until it is entered again: recursion would
 * have a frame of its own.
 */
static struct shim_node *drop_inlined(const struct tree *tree,
				      struct shim_node *current,
				      uint64_t function, uint64_t frame)
{
	struct shim_node *node = current;

	if (tree->landed != frame)
		return current;
	for (; node->frame == frame && !is_root(node); node = parent_of(node))
		if (address_of(node) == function)
			return unwind(current, parent_of(node));
	return current;
}

static COLD void enter_slowly(uint64_t function, uintptr_t sp)
{
	struct tree *tree = hot.tree;
	struct place at;
	struct shim_node *node;
	uint64_t frame;

	if (!tree || hot.shared)
		tree = get_tree(sp);
	if (!find_place(&at, tree, sp)) {
		shim_record_lost(hot.cause);
		return;
	}
	tree = at.tree;
	if (UNLIKELY(tree->lost_depth)) {
		if (sp <= tree->lost_sp) {
			lose_call(tree, sp);
			return;
		}
		tree->lost_depth = 0; /* those frames are gone */
	}
	frame = frame_of(sp, at.stack->low);
	at.current = drop_stale(at.stack, at.current, sp);
	at.current = drop_inlined(tree, at.current, function, frame);
	node = find_or_make(tree, at.current, function);
	if (UNLIKELY(!node)) {
		lose_call(tree, sp);
		publish(tree, at.stack, at.current);
		return;
	}
	publish(tree, at.stack, node);
	open_call(node, frame);
}

static void count_orphan(void)
{
	struct shim_meta *meta = shim_record_meta();

	if (meta)
		__atomic_fetch_add(&meta->orphans, 1, __ATOMIC_RELAXED);
}

static struct shim_node *find_open(struct shim_node *node, uint64_t function)
{
	while (address_of(node) != function) {
		if (is_root(node))
			return NULL;
		node = parent_of(node);
	}
	return node;
}

static COLD void leave_slowly(uint64_t function, uintptr_t sp)
{
	struct tree *tree = hot.tree;
	struct place at;
	struct shim_node *node;
	uint64_t duration;

	if (hot.shared)
		tree = tree_of(shim_thread_id());
	if (!find_place(&at, tree, sp))
		return; /* its enter was lost, and counted */
	tree = at.tree;
	if (UNLIKELY(tree->lost_depth)) {
		if (--tree->lost_depth == 0)
			publish(tree, at.stack, at.current);
		return;
	}
	node = find_open(at.current, function);
	if (!node) {
		count_orphan();
		publish(tree, at.stack, at.current);
		return;
	}
	unwind(at.current, node);
	duration = duration_of(node);
	publish(tree, at.stack, parent_of(node));
	close_call(node, duration);
}

/* --- the fast path --- */

/* A cache miss where nothing else is wrong. */
static __attribute__((noinline)) void
enter_missed(uint64_t function, uintptr_t sp, struct shim_node *current)
{
	struct tree *tree = hot.tree;
	uint64_t frame = frame_of(sp, hot.low);
	struct shim_node *node;

	if (UNLIKELY(current == &nobody || frame > current->frame)) {
		enter_slowly(function, sp);
		return;
	}
	node = *cache_place(current, function);
	if (node->function != (function | SHIM_NODE_EXACT) ||
	    node->parent != (uint64_t)current) {
		node = find(tree->table, current, function);
		if (UNLIKELY(!node)) {
			enter_slowly(function, sp);
			return;
		}
		*cache_place(current, function) = node;
	}
	hot.current = node;
	open_call(node, frame);
}

static __attribute__((noinline)) void leave_missed(uint64_t function,
						   uintptr_t sp)
{
	struct shim_node *node = hot.current;

	if (node->function == (function | SHIM_NODE_EXACT)) {
		uint64_t duration = shim_clock() - node->start;

		hot.current = parent_of(node);
		close_call(node, duration);
		return;
	}
	leave_slowly(function, sp);
}

static inline __attribute__((always_inline)) void
enter(uint64_t function, uintptr_t sp, enum clock clock)
{
	struct shim_node *current = hot.current;
	struct shim_node *node = *cache_place(current, function);
	uint64_t frame = frame_of(sp, hot.low);
	uint64_t time = 0;

	if (clock == EXACT) {
		/* Where the clock must not be read there is no current node. */
		if (UNLIKELY(current == &nobody)) {
			enter_missed(function, sp, current);
			return;
		}
		/* Here, where the loads above are under way already: it takes
		 * longer than they do. */
		time = shim_clock();
	}
	if (UNLIKELY(node->function != function) ||
	    UNLIKELY(node->parent != (uint64_t)current) ||
	    UNLIKELY(frame > current->frame)) {
		enter_missed(function, sp, current);
		return;
	}
	/* Current first: what a handler calls from here on is the node's child.
	 * (The compiler keeps this order: every store below may alias it.) */
	__atomic_store_n(&hot.current, node, __ATOMIC_RELEASE);
	node->frame = frame;
	shim_add(&node->calls, 1);
	if (clock == COARSE)
		node->start = *hot.tick;
	else if (clock == EXACT)
		node->start = time;
}

static inline __attribute__((always_inline)) void
leave(uint64_t function, uintptr_t sp, enum clock clock)
{
	struct shim_node *node = hot.current;
	struct shim_extra_node *extra = NULL;
	uint64_t now, duration, last = 0;

	if (UNLIKELY(node->function != function)) {
		leave_missed(function, sp);
		return;
	}
	if (clock == EXACT) {
		extra = (struct shim_extra_node *)node->extra;
		now = shim_clock();
	} else {
		now = clock == COARSE ? *hot.tick : 0;
	}
	duration = clock == COUNTS ? 0 : now - node->start;
	if (clock == EXACT && LIKELY(extra != NULL))
		last = exchange_last(extra, duration);
	__atomic_store_n(&hot.current, parent_of(node), __ATOMIC_RELEASE);
	node->frame = 0;
	if (clock == COARSE) {
		if (UNLIKELY(duration != 0)) {
			shim_add(&node->time, duration);
			node->hits++;
			choose_clock(node);
		}
	} else if (clock == EXACT) {
		shim_add(&node->time, duration);
		if (LIKELY(extra != NULL))
			count_duration(extra, last);
		else
			make_extra(node, duration);
	}
}

#define HOOKS(name, clock)                                                     \
	static HOT void name##_enter(shim_function function, const void *site) \
	{                                                                      \
		(void)site;                                                    \
		enter(function, (uintptr_t)__builtin_dwarf_cfa(), clock);      \
	}                                                                      \
	static HOT void name##_leave(shim_function function, const void *site) \
	{                                                                      \
		(void)site;                                                    \
		leave(function, (uintptr_t)__builtin_dwarf_cfa(), clock);      \
	}

HOOKS(counts, COUNTS)
HOOKS(coarse, COARSE)
HOOKS(exact, EXACT)

/* --- events --- */

/* The tree of the calling task, if it has one, with what the fast path did. */
static struct tree *my_tree(void)
{
	struct tree *tree = hot.tree;

	if (hot.shared)
		tree = tree_of(shim_thread_id());
	if (tree)
		collect(tree);
	return tree;
}

static struct jump *jump_of(struct tree *tree, const void *buffer)
{
	uintptr_t at = (uintptr_t)buffer;

	return &tree->jumps[(at >> 4 ^ at >> 10) % JUMPS];
}

static void on_jump_saved(struct shim_profiler *profiler, const void *buffer,
			  uintptr_t sp)
{
	struct tree *tree = my_tree();

	(void)profiler;
	if (tree)
		*jump_of(tree, buffer) =
			(struct jump){ buffer, tree->current, sp };
}

/* Frames of the stack of @sp that lie below it are gone. */
static void cut(struct tree *tree, uintptr_t sp)
{
	if (tree->lost_depth && sp > tree->lost_sp)
		tree->lost_depth = 0;
	if (!contains(tree->stack, sp)) {
		uint64_t signals = shim_signals_block();

		switch_stack(tree, sp);
		publish(tree, tree->stack, tree->current);
		shim_signals_restore(signals);
	}
	publish(tree, tree->stack,
		drop_stale(tree->stack, tree->current, sp));
}

static void on_jump_taken(struct shim_profiler *profiler, const void *buffer,
			  uintptr_t sp)
{
	struct tree *tree = my_tree();
	struct jump *jump;

	(void)profiler;
	if (!tree)
		return;
	jump = jump_of(tree, buffer);
	if (jump->buffer == buffer && (sp == 0 || jump->sp == sp) &&
	    is_open(tree->current, jump->node)) {
		if (tree->lost_depth && jump->sp > tree->lost_sp)
			tree->lost_depth = 0;
		publish(tree, tree->stack,
			unwind(tree->current, jump->node));
		sp = jump->sp;
	}
	if (sp)
		cut(tree, sp);
}

static void on_frames_unwound(struct shim_profiler *profiler, uintptr_t sp)
{
	struct tree *tree = my_tree();

	(void)profiler;
	if (!tree)
		return;
	cut(tree, sp);
	tree->landed = tree->current->frame;
}

static void on_stack_created(struct shim_profiler *profiler, uintptr_t low,
			     uintptr_t high)
{
	struct tree *tree = my_tree();
	struct stack *stack;
	uint64_t signals;

	(void)profiler;
	if (!tree)
		tree = get_tree((uintptr_t)__builtin_frame_address(0));
	if (!tree)
		return;
	signals = shim_signals_block();
	for (stack = tree->stacks; stack; stack = stack->next)
		if (stack->low == low && stack->high == high &&
		    stack != &tree->main_stack)
			break;
	if (stack) {
		/* The coroutine before it will not come back. */
		unwind(stack->current, stack->base);
		stack->current = stack->base;
	} else {
		stack = add_stack(tree, low, high);
		if (stack)
			give_root(tree, stack);
	}
	publish(tree, tree->stack, tree->current);
	shim_signals_restore(signals);
}

static void on_stack_switched(struct shim_profiler *profiler, uintptr_t sp)
{
	struct tree *tree = my_tree();
	uint64_t signals;

	(void)profiler;
	/* It may lie inside the one in use: an array of some function. */
	if (!tree || !known_stack(tree, sp) ||
	    known_stack(tree, sp) == tree->stack)
		return;
	signals = shim_signals_block();
	switch_stack(tree, sp);
	publish(tree, tree->stack, tree->current);
	shim_signals_restore(signals);
}

/* The open calls of the parent go on in the child, in a tree of its own where
 * they have been called 0 times. */
static void copy_open_calls(struct tree *tree, struct shim_node *innermost)
{
	struct shim_node **path, *node;
	size_t depth = 0, size;

	for (node = innermost; !is_root(node); node = parent_of(node))
		depth++;
	size = (depth + 1) * sizeof(*path);
	path = shim_memory(size);
	if (!path)
		return;
	for (node = innermost; !is_root(node); node = parent_of(node))
		path[--depth] = node;
	for (size_t i = 0; path[i]; i++) {
		node = make_node(tree, tree->current, address_of(path[i]));
		if (!node)
			break;
		tree->current = node;
		open_call(node, path[i]->frame);
		node->calls = 0;
	}
	shim_memory_empty(path, size);
}

static void describe(struct shim_meta *meta);

static void on_forked(struct shim_profiler *profiler)
{
	struct tree *parent = my_tree(), *tree;
	struct shim_node *innermost;
	struct stack stack;

	(void)profiler;
	/* The parent's cache stays until there is one: interrupted code may be
	 * about to look into it, and verifies what it finds. */
	hot = (struct hot){ .current = &nobody,
			    .cache = hot.cache,
			    .cache_mask = hot.cache_mask };
	trees = NULL;
	if (shim_record_meta())
		describe(shim_record_meta());
	if (!parent)
		return;
	innermost = parent->current;
	stack = *parent->stack;
	tree = get_tree((uintptr_t)__builtin_frame_address(0));
	if (!tree)
		return;
	tree->main_stack.low = stack.low;
	tree->main_stack.high = stack.high;
	tree->root->frame = frame_of(stack.high, stack.low);
	copy_open_calls(tree, innermost);
	publish(tree, tree->stack, tree->current);
}

/* Another task runs with this thread's data: a vfork child, a clone without
 * data of its own.  It is found by its tid, and so is this thread. */
static void on_data_shared(struct shim_profiler *profiler, int begins)
{
	struct tree *tree = my_tree();

	(void)profiler;
	if (begins) {
		hot.shared++;
		hot.current = &nobody;
	} else if (--hot.shared == 0 && tree) {
		publish(tree, tree->stack, tree->current);
	}
}

static void on_thread_ended(struct shim_profiler *profiler)
{
	struct tree *tree = my_tree();

	(void)profiler;
	if (tree && tree->tid == shim_thread_id())
		publish(tree, tree->stack, unwind(tree->current, NULL));
}

static void on_image_unloaded(struct shim_profiler *profiler, uintptr_t low,
			      uintptr_t high, uint32_t generation)
{
	(void)profiler;
	for (struct tree *tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     tree; tree = tree->next) {
		struct table *table = tree->table;

		for (uint64_t i = 0; i < 1ull << (64 - table->shift); i++) {
			struct shim_node *node = table->slot[i];

			if (node && address_of(node) >= low &&
			    address_of(node) < high)
				node->function |= (uint64_t)generation << 48;
		}
	}
}

static void on_system_closing(struct shim_profiler *profiler)
{
	struct tree *tree = my_tree();
	enum shim_lost cause;
	void *memory;
	size_t size;

	(void)profiler;
	if (!tree)
		tree = get_tree((uintptr_t)__builtin_frame_address(0));
	if (!tree)
		return;
	/* The last chance: some room for what comes. */
	memory = shim_record_grow(tree->record, 1u << 20, &size, &cause);
	if (memory)
		add_chunk(tree, memory, size);
	tree->closed = true;
	publish(tree, tree->stack, tree->current);
}

static void on_clock_closing(struct shim_profiler *profiler)
{
	struct tree *tree = my_tree();

	(void)profiler;
	hot.no_clock = true;
	if (!tree)
		return;
	tree->careful = true;
	publish(tree, tree->stack, tree->current);
}

/* --- start --- */

/*
 * What a call costs: a function as compilers instrument it less the same one
 * plain.  What they cannot do any more in real functions, and the cache that
 * our nodes take, is not in it.
 */
struct measured {
	shim_function_hook enter, leave;
};

static __attribute__((noinline)) uint64_t plain(const struct measured *hooks,
						uint64_t value)
{
	__asm__ volatile("" : "+r"(hooks), "+r"(value));
	return value * 3 + 1;
}

static __attribute__((noinline)) uint64_t hooked(const struct measured *hooks,
						 uint64_t value)
{
	const void *site = __builtin_return_address(0);

	hooks->enter(1, site);
	value = plain(hooks, value);
	hooks->leave(1, site);
	return value;
}

static uint64_t time_calls(uint64_t (*function)(const struct measured *hooks,
						uint64_t value),
			   const struct measured *hooks, uint64_t calls)
{
	uint64_t before, value = 1, best = ~0ull;

	/* The best of a few: interruptions only add. */
	for (int round = 0; round < 4; round++) {
		before = shim_clock();
		for (uint64_t i = 0; i < calls; i++)
			value = function(hooks, value);
		before = shim_clock() - before;
		if (before < best)
			best = before;
	}
	__asm__ volatile("" ::"r"(value));
	return best;
}

static void measure_cost(shim_function_hook enter_hook,
			 shim_function_hook leave_hook, struct shim_cost *cost,
			 bool exact)
{
	static struct shim_node root = { .frame = ~0ull }, node;
	static struct shim_node *cache[1] = { &node };
	static struct shim_extra_node extra;
	const struct measured hooks = { enter_hook, leave_hook };
	const uint64_t calls = 128;
	uint64_t signals = shim_signals_block();
	struct hot saved = hot;
	uint64_t total, bare;

	node = (struct shim_node){ .function = 1,
				   .parent = (uint64_t)&root,
				   .extra = (uint64_t)&extra };
	/* A tick that stands still: it could make the node an exact one. */
	hot = (struct hot){ .current = &root,
			    .cache = cache,
			    .tick = &tick_length };
	bare = time_calls(plain, &hooks, calls);
	total = time_calls(hooked, &hooks, calls);
	hot = saved;
	shim_signals_restore(signals);
	total = total > bare ? (total - bare) * 1000 / calls : 0;
	/* The coarse clock cannot time itself.  Between its two readings lie
	 * the way out of enter and into leave: two of five jumps. */
	cost->inside = (uint32_t)(exact ? node.time * 1000 / (4 * calls) :
					  total * 2 / 5);
	if (cost->inside > total)
		cost->inside = (uint32_t)total;
	cost->outside = (uint32_t)total - cost->inside;
}

static void describe(struct shim_meta *meta)
{
	if (mode == COUNTS) {
		measure_cost(counts_enter, counts_leave, &meta->cost_coarse,
			     false);
		return;
	}
	measure_cost(exact_enter, exact_leave, &meta->cost_exact, true);
	meta->cost_coarse = meta->cost_exact;
	if (mode == COARSE)
		measure_cost(coarse_enter, coarse_leave, &meta->cost_coarse,
			     false);
}

static bool is_word(const char *string, const char *word)
{
	while (*word && *string == *word)
		string++, word++;
	return *word == '\0' && *string == '\0';
}

int calltree_start(const char *arguments);

/* @arguments: "", "exact" or "counts".  0, or -1 if it is none of them. */
int calltree_start(const char *arguments)
{
	static const shim_function_hook hooks[][2] = {
		[COUNTS] = { counts_enter, counts_leave },
		[COARSE] = { coarse_enter, coarse_leave },
		[EXACT] = { exact_enter, exact_leave },
	};
	struct shim_meta *meta = shim_record_meta();
	struct shim_handle *handle;

	if (is_word(arguments, "counts"))
		mode = COUNTS;
	else if (is_word(arguments, "exact"))
		mode = EXACT;
	else if (is_word(arguments, ""))
		mode = COARSE;
	else
		return -1;
	tick = shim_tick(&tick_length);
	if (mode == COARSE && !tick)
		mode = EXACT;
	long_clock = meta->clock_hz ? meta->clock_hz / (1000000000 / LONG_NS) :
				      1000;
	describe(meta);
	handle = shim_profiler_create(NULL);
	shim_profiler_on_jump_saved(handle, on_jump_saved);
	shim_profiler_on_jump_taken(handle, on_jump_taken);
	shim_profiler_on_frames_unwound(handle, on_frames_unwound);
	shim_profiler_on_stack_created(handle, on_stack_created);
	shim_profiler_on_stack_switched(handle, on_stack_switched);
	shim_profiler_on_forked(handle, on_forked);
	shim_profiler_on_data_shared(handle, on_data_shared);
	shim_profiler_on_thread_ended(handle, on_thread_ended);
	shim_profiler_on_image_unloaded(handle, on_image_unloaded);
	shim_profiler_on_clock_closing(handle, on_clock_closing);
	shim_profiler_on_system_closing(handle, on_system_closing);
	shim_set_enter_leave_function_hooks3(handle, hooks[mode][0],
					     hooks[mode][1], NULL);
	return 0;
}
