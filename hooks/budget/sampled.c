/*
 * A sample becomes a path of nodes below the innermost recorded call.  The unwinder
 * provides the frames between the interrupted instruction and the frame of that call's
 * hook. Only the sampler's signal adds nodes, and it does not interrupt itself; so each
 * tree has one writer at a time.
 */
#define _GNU_SOURCE
#include "budget/sampled.h"
#include "path/nodes.h"
#include "path/threads.h"

#include <shim/stack.h>
#include <ucontext.h>

#include <shim/banned.h>

#define FRAMES_MAX 256

/* The nodes of a tree, by parent and address; and memory for the frames of a sample,
 * which is too large for some stacks. */
struct sampled {
	uint64_t shift, used;
	struct shim_sampled_node **slot; /* 2^(64 - shift) */
	uintptr_t frames[FRAMES_MAX];
};

static unsigned tree_slot;

void budget_samples_start(void)
{
	tree_slot = path_add_slot();
}

/* --- nodes --- */

static uint64_t slots_of(const struct sampled *sampled)
{
	return 1ull << (64 - sampled->shift);
}

static struct shim_sampled_node **slot_of(const struct sampled *sampled,
					  uint64_t parent, uint64_t address)
{
	uint64_t i = ((parent >> 6) ^ (address << 20)) *
			     0x9e3779b97f4a7c15ull >>
		     sampled->shift;

	for (;; i++) {
		struct shim_sampled_node **place =
			&sampled->slot[i & (slots_of(sampled) - 1)];

		if (!*place || ((*place)->parent == parent &&
				(*place)->address == address))
			return place;
	}
}

/* The old slots stay mapped, because another thread may read them
 * (budget_samples_image_gone). */
static bool grow_slots(struct sampled *sampled)
{
	struct shim_sampled_node **before = sampled->slot;
	uint64_t slots = before ? slots_of(sampled) : 0;
	struct shim_sampled_node **slot;

	if (sampled->used * 2 < slots)
		return true;
	slot = shim_memory_map((slots ? slots * 2 : 256) * sizeof(*slot));
	if (!slot)
		return sampled->used + 2 < slots;
	/* The slots are stored before their number, so that a reader never goes beyond
	 * them. */
	__atomic_store_n(&sampled->slot, slot, __ATOMIC_RELEASE);
	__atomic_store_n(&sampled->shift, slots ? sampled->shift - 1 : 64 - 8,
			 __ATOMIC_RELEASE);
	for (uint64_t i = 0; i < slots; i++)
		if (before[i])
			*slot_of(sampled, before[i]->parent,
				 before[i]->address) = before[i];
	return true;
}

static struct sampled *get_sampled(struct tree *tree)
{
	struct sampled *sampled = tree->slot[tree_slot];

	if (!sampled) {
		sampled = shim_memory_map(sizeof(*sampled));
		tree->slot[tree_slot] = sampled;
	}
	return sampled;
}

static struct shim_sampled_node *get_child(struct tree *tree,
					   struct sampled *sampled,
					   uint64_t parent, uint64_t address)
{
	struct shim_sampled_node **place, *node;

	if (!grow_slots(sampled))
		return NULL;
	place = slot_of(sampled, parent, address);
	if (*place)
		return *place;
	node = tree_take(tree, sizeof(*node));
	if (!node)
		return NULL;
	if (address)
		shim_image_note(address);
	node->parent = parent;
	node->address = address;
	__atomic_store_n(&node->function, SHIM_NODE_SAMPLED, __ATOMIC_RELEASE);
	__atomic_store_n(place, node, __ATOMIC_RELEASE);
	sampled->used++;
	return node;
}

/* --- samples --- */

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static bool is_ours(uintptr_t address)
{
	return shim_is_counter(address) ||
	       address - (uintptr_t)__ehdr_start <
		       (uintptr_t)etext - (uintptr_t)__ehdr_start;
}

uint64_t budget_samples_hooks, budget_samples_counters;

static void add_weight(struct shim_sampled_node *node, bool is_own,
		       uint32_t weight)
{
	shim_local_add(is_own ? &node->own : &node->samples, weight);
	shim_local_add(&node->signals, 1);
}

/* The innermost frames that are those of hooks.  What mcount and __fentry__ do for gmon.out,
 * the program pays without shim, too. */
static uint32_t count_hooks(const uintptr_t *frames, uint32_t count)
{
	uint32_t hooks = 0;

	while (hooks < count && is_ours(frames[hooks] & ~SHIM_STACK_GUESS) &&
	       !shim_mcount_of(frames[hooks]))
		hooks++;
	return hooks;
}

/* Adds the path from @node inwards. */
static void add_frames(struct tree *tree, struct sampled *sampled,
		       const struct shim_node *node, uint32_t frames,
		       bool is_whole, bool is_counter, uint32_t weight)
{
	uint64_t parent = (uint64_t)node;
	struct shim_sampled_node *at = NULL;
	uint32_t first = count_hooks(sampled->frames, frames);

	if (!is_whole || first == frames) {
		at = get_child(tree, sampled, parent, 0);
		parent = (uint64_t)at;
	}
	while (parent && frames > first) {
		at = get_child(tree, sampled, parent,
			       sampled->frames[--frames] & SHIM_NODE_ADDRESS);
		parent = (uint64_t)at;
	}
	if (first > 0)
		__atomic_fetch_add(&budget_samples_hooks, weight,
				   __ATOMIC_RELAXED);
	if (is_counter)
		__atomic_fetch_add(&budget_samples_counters, weight,
				   __ATOMIC_RELAXED);
	if (parent)
		add_weight(at, is_counter || first > 0, weight);
}

/* The calling task's tree, made if it has none: its first call may come later, or
 * never. */
static struct tree *find_tree(uintptr_t sp)
{
	struct tree *tree = tree_own();

	return tree ? tree : tree_get(sp);
}

/*
 * The unwinder does not know the code that counts calls.  That code pushes nothing, so the
 * thread is taken back to the call.  (It knows that of marks.)  Returns whether the thread
 * was in such code.
 */
static bool leave_counter(const void *context, uintptr_t *ip, uintptr_t *sp)
{
#ifdef __x86_64__
	greg_t *registers =
		((ucontext_t *)(uintptr_t)context)->uc_mcontext.gregs;

	*ip = (uintptr_t)registers[REG_RIP];
	*sp = (uintptr_t)registers[REG_RSP];
	if (!shim_is_counter(*ip))
		return shim_is_thunk(*ip) != 0;
	registers[REG_RIP] = *(const greg_t *)*sp - 1;
	registers[REG_RSP] += (greg_t)sizeof(greg_t);
	return true;
#else
	(void)context, (void)ip, (void)sp;
	return false;
#endif
}

static void return_to_counter(const void *context, uintptr_t ip, uintptr_t sp)
{
#ifdef __x86_64__
	greg_t *registers =
		((ucontext_t *)(uintptr_t)context)->uc_mcontext.gregs;

	registers[REG_RIP] = (greg_t)ip;
	registers[REG_RSP] = (greg_t)sp;
#else
	(void)context, (void)ip, (void)sp;
#endif
}

static uintptr_t sp_of(const void *context)
{
#ifdef __x86_64__
	return (uintptr_t)((const ucontext_t *)context)
		->uc_mcontext.gregs[REG_RSP];
#else
	(void)context;
	return 0;
#endif
}

struct tree *budget_samples_add(const void *context, uint32_t weight)
{
	uintptr_t sp = sp_of(context);
	struct tree *tree = find_tree(sp);
	struct sampled *sampled = tree ? get_sampled(tree) : NULL;
	struct shim_node *node;
	uint32_t frames = 0;
	uintptr_t end, counter_ip, counter_sp;
	bool is_whole, is_counter;

	if (!sampled)
		return NULL;
	node = tree_innermost(tree, sp, &end);
	is_counter = leave_counter(context, &counter_ip, &counter_sp);
	is_whole = shim_stack_calls(context, end, FRAMES_MAX, &frames,
				    sampled->frames) == SHIM_OK &&
		   frames <= FRAMES_MAX;
	if (is_counter)
		return_to_counter(context, counter_ip, counter_sp);
	if (frames > FRAMES_MAX)
		frames = FRAMES_MAX;
	frames = shim_fold_mcount(sampled->frames, frames);
	add_frames(tree, sampled, node, frames, is_whole, is_counter, weight);
	return tree;
}

struct tree *budget_samples_add_place(const void *context, uintptr_t ip,
				      uint32_t weight)
{
	uintptr_t sp = sp_of(context);
	struct tree *tree = find_tree(sp);
	struct sampled *sampled = tree ? get_sampled(tree) : NULL;
	struct shim_sampled_node *at;
	uintptr_t end;

	if (!sampled)
		return NULL;
	at = get_child(tree, sampled, (uint64_t)tree_innermost(tree, sp, &end),
		       0);
	if (at)
		add_weight(at, is_ours(ip), weight);
	return tree;
}

void budget_samples_image_gone(uintptr_t low, uintptr_t high,
			       uint32_t generation)
{
	for (struct tree *tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     tree; tree = tree->next) {
		const struct sampled *sampled = tree->slot[tree_slot];
		uint64_t shift = sampled ? __atomic_load_n(&sampled->shift,
							   __ATOMIC_ACQUIRE) :
					   0;
		uint64_t slots = shift ? 1ull << (64 - shift) : 0;

		for (uint64_t i = 0; i < slots; i++) {
			struct shim_sampled_node *node = sampled->slot[i];

			if (node && node->address >= low &&
			    node->address < high)
				node->address |= (uint64_t)generation << 48;
		}
	}
}
