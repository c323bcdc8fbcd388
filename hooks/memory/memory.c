/*
 * The memory profiler: `-p memory`.  It records the allocations of each path of calls,
 * the part that was live at the peak, and the part that is live at the end.
 *
 * The path comes from the call tree: its current node is the innermost instrumented
 * call, and has a memory node in the same file.  So calls are counted as well, even
 * without calltree.  A block's word (its note) has its memory node, and a release
 * counts there.
 *
 * The peak.  While the live bytes exceed the maximum so far, each allocation is a new
 * peak.  The first release after that ends the peak and begins an epoch.  Before a path
 * first changes in an epoch, its live bytes are saved: they are its bytes at the peak.
 * So only paths that change are copied; all others still have their values of the peak.
 */
#include "memory/memory.h"
#include "path/path_unwind.h"
#include "path/needs.h"
#include "path/nodes.h"
#include "path/threads.h"
#include "path/times.h"

#include "options/start.h"

#include <shim/allocations.h>
#include <shim/mappings.h>
#include <shim/reach.h>

#include <shim/banned.h>

/* A note has the address of a memory node, and the number of recordings that the process
 * and its ancestors had before, whose nodes are invalid. */
#define NOTE_ADDRESS SHIM_NODE_ADDRESS
#define NOTE_SHIFT   48

static unsigned node_slot; /* for EXACT, with @extra in use */
static struct shim_heap_node *heap;
/* The number of recordings before, and before the first one of this attach. */
static uint64_t generation, attached_generation;
static bool unwinds;	      /* the option unwind */
static uint64_t period, seed; /* period 0: no sampling */
static uint64_t tick_length;

const volatile uint64_t *memory_tick;

uint64_t memory_leaks_ms = 1000, memory_snapshot_period;
static uint64_t snapshots_ms;

/* --- the path of an allocation --- */

static struct shim_heap_node *make_heap(struct tree *tree)
{
	struct shim_heap_node *made = tree_take(tree, sizeof(*made));
	struct shim_heap_node *none = NULL;

	if (!made)
		return NULL;
	made->calls = tree_is_asked;
	made->period = period;
	made->has_lives = memory_tick != NULL;
	if (!__atomic_compare_exchange_n(&heap, &none, made, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return none;
	__atomic_store_n(&made->function, SHIM_NODE_HEAP, __ATOMIC_RELEASE);
	if (memory_tick && shim_record_meta())
		memory_points_start(tree, tick_length,
				    shim_record_meta()->tick);
	return made;
}

static uint64_t *place_of(struct shim_node *node)
{
	return is_root(node) ? &((struct shim_thread_node *)node)->memory :
			       &node->extra;
}

/* Whether @extra is a memory node, and not 0 or calltree's self time. */
static inline bool has_memory(uint64_t extra)
{
	return extra != 0 && !(extra & SHIM_EXTRA_SELF);
}

/* Whether calltree uses @extra: every call is timed exactly. */
static inline bool is_beside(const struct shim_node *node)
{
	return tree_mode == EXACT && !is_root(node);
}

/* The memory node of @node, or NULL. */
static struct shim_memory_node *memory_of(const struct tree *tree,
					  struct shim_node *node)
{
	uint64_t word = is_beside(node) ?
				tree_find_data(tree, node, node_slot) :
				*place_of(node);

	return has_memory(word) ? (struct shim_memory_node *)word : NULL;
}

static bool attach(struct tree *tree, struct shim_node *node,
		   struct shim_memory_node *memory)
{
	uint64_t self;

	if (is_beside(node))
		return tree_set_data(tree, node, node_slot, (uint64_t)memory);
	self = __atomic_exchange_n(place_of(node), (uint64_t)memory,
				   __ATOMIC_RELAXED);
	shim_local_add(&memory->self, self >> 1);
	return true;
}

static COLD struct shim_memory_node *make_memory(struct tree *tree,
						 struct shim_node *node)
{
	struct shim_memory_node *memory;

	if (!heap && !make_heap(tree))
		return NULL;
	memory = tree_take(tree, sizeof(*memory));
	if (!memory)
		return NULL;
	memory->node = (uint64_t)node;
	memory->owner = (uint64_t)tree;
	memory->epoch = heap->epoch;
	__atomic_store_n(&memory->function, SHIM_NODE_MEMORY, __ATOMIC_RELEASE);
	return attach(tree, node, memory) ? memory : NULL;
}

/* Skips calls whose frames were unwound without an event, because these cannot
 * allocate. */
static COLD struct shim_memory_node *find_or_make(uintptr_t sp)
{
	struct shim_memory_node *made;
	struct place at;
	struct shim_node *node = tree_find_caller(&at, sp);

	if (!node)
		return NULL;
	if (unwinds && is_root(node)) {
		node = path_unwind(at.tree, node);
		if (!node) {
			tree_hot.cause = at.tree->lost_cause;
			return NULL;
		}
	}
	/* Somebody has truncated the file: a call reads as zero, so it looks like a root,
	 * and the word of a root's memory node has a time. */
	if (node->function == 0) {
		tree_hot.cause = SHIM_LOST_OTHER;
		return NULL;
	}
	made = memory_of(at.tree, node);
	if (made)
		return made;
	made = make_memory(at.tree, node);
	if (!made)
		tree_hot.cause = at.tree->lost_cause;
	return made;
}

static __attribute__((noinline)) struct shim_memory_node *
find_beside(struct shim_node *node, uintptr_t sp)
{
	struct shim_memory_node *memory = memory_of(tree_hot.tree, node);

	return LIKELY(memory != NULL) ? memory : find_or_make(sp);
}

static inline struct shim_memory_node *find_here(void)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	struct shim_node *node = tree_hot.current;

	if (tree_is_former())
		return find_or_make(sp);
	if (UNLIKELY(frame_here(sp) > node->frame) || UNLIKELY(is_root(node)))
		return find_or_make(sp);
	if (UNLIKELY(tree_mode == EXACT))
		return find_beside(node, sp);
	if (LIKELY(has_memory(node->extra)))
		return (struct shim_memory_node *)node->extra;
	return find_or_make(sp);
}

static COLD void count_inherited(void)
{
	struct tree *tree = heap ? NULL :
				   tree_get((uintptr_t)__builtin_frame_address(
					   0));

	if (tree)
		make_heap(tree);
	if (heap)
		__atomic_fetch_add(&heap->inherited, 1, __ATOMIC_RELAXED);
}

struct shim_memory_node *memory_of_note(uint64_t note)
{
	return note >> NOTE_SHIFT == generation ?
		       (struct shim_memory_node *)(note & NOTE_ADDRESS) :
		       NULL;
}

/* The memory node of a block, or NULL if this process did not count the block. */
static struct shim_memory_node *find_noted(uint64_t note)
{
	if (note == 0)
		return NULL;
	if (LIKELY(note >> NOTE_SHIFT == generation))
		return (struct shim_memory_node *)(note & NOTE_ADDRESS);
	if (note >> NOTE_SHIFT < attached_generation)
		shim_older_release();
	else
		count_inherited();
	return NULL;
}

static uint64_t note_of(const struct shim_memory_node *memory)
{
	return (uint64_t)memory | generation << NOTE_SHIFT;
}

/* --- the heap, and its peak --- */

static void save_live(struct shim_memory_node *memory)
{
	uint64_t epoch = __atomic_load_n(&heap->epoch, __ATOMIC_RELAXED);

	if (LIKELY(memory->epoch == epoch))
		return;
	memory->peak_bytes = memory->allocated_bytes - memory->released_bytes -
			     memory->other_released_bytes;
	memory->peak_blocks = memory->allocations - memory->releases -
			      memory->other_releases;
	__atomic_store_n(&memory->epoch, epoch, __ATOMIC_RELEASE);
}

static uint64_t peak_tick; /* peak_clock is its time */

static void note_peak_clock(void)
{
	uint64_t tick = memory_tick ? *memory_tick : 0;

	if (tick == __atomic_load_n(&peak_tick, __ATOMIC_ACQUIRE))
		return;
	heap->peak_clock = shim_clock_of_coarse(tick);
	__atomic_store_n(&peak_tick, tick, __ATOMIC_RELEASE);
}

static void raise_peak(uint64_t live)
{
	uint64_t peak = __atomic_load_n(&heap->peak_bytes, __ATOMIC_RELAXED);

	while (live > peak)
		if (__atomic_compare_exchange_n(&heap->peak_bytes, &peak, live,
						false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			break;
	note_peak_clock();
	__atomic_store_n(&heap->is_rising, 1, __ATOMIC_RELAXED);
}

static void end_peak(void)
{
	if (__atomic_exchange_n(&heap->is_rising, 0, __ATOMIC_ACQ_REL))
		__atomic_fetch_add(&heap->epoch, 1, __ATOMIC_RELEASE);
}

/* Runs before an allocation or release is counted; @change is the change of all live
 * bytes. */
static inline void begin_change(int64_t change)
{
	if (change < 0 &&
	    UNLIKELY(__atomic_load_n(&heap->is_rising, __ATOMIC_RELAXED)))
		end_peak();
}

static inline uint64_t add_live(uint64_t change)
{
	if (shim_is_single_threaded())
		return shim_fetch_add(&heap->live_bytes, change) + change;
	return __atomic_add_fetch(&heap->live_bytes, change, __ATOMIC_RELAXED);
}

static inline void end_change(int64_t change)
{
	uint64_t live = add_live((uint64_t)change);

	if (change > 0 && UNLIKELY(live > __atomic_load_n(&heap->peak_bytes,
							  __ATOMIC_RELAXED)))
		raise_peak(live);
}

/* The counts of the former recording, which may be the parent's. */
static struct shim_allocation_counts former;

static void store_counts(void)
{
	struct shim_allocation_counts counts;

	if (shim_get_allocation_counts(&counts) != SHIM_OK)
		return;
	heap->untold = counts.untold - former.untold;
	heap->unknown = counts.unknown - former.unknown;
	heap->early_lost = counts.early_lost - former.early_lost;
}

/* A process that is killed has stored its counts with the last point. */
static COLD void add_point(uint64_t clock)
{
	memory_point_add(clock, heap->live_bytes);
	store_counts();
}

/* Runs after an allocation is counted, and at the release of a block that lived for a
 * tick or longer. */
static inline void note_live(uint64_t clock)
{
	if (UNLIKELY(clock >=
		     __atomic_load_n(&memory_point_due, __ATOMIC_RELAXED)))
		add_point(clock);
}

/* --- counting --- */

static void count_allocation(struct shim_memory_node *memory,
			     const struct shim_block *block)
{
	unsigned bucket = 63u - (unsigned)__builtin_clzll(block->size | 1);
	uint64_t weight = block->weight;

	if (UNLIKELY(bucket >= SHIM_BUCKETS))
		bucket = SHIM_BUCKETS - 1;
	shim_local_add(&memory->allocations, weight);
	shim_local_add(&memory->allocated_bytes, block->weight_bytes);
	shim_local_add(&memory->sizes[bucket], weight);
	if (UNLIKELY(period != 0))
		shim_local_add(&memory->samples, 1);
	*block->note = note_of(memory);
}

/* The thread that releases the first block that lived for a tick makes the node, in its
 * own file. */
static COLD struct shim_lives_node *make_lives(struct shim_memory_node *memory)
{
	struct tree *tree;
	struct shim_lives_node *made;
	uint64_t none = 0;

	tree = tree_get((uintptr_t)__builtin_frame_address(0));
	made = tree ? tree_take(tree, sizeof(*made)) : NULL;
	if (!made)
		return NULL;
	made->node = (uint64_t)memory;
	if (!__atomic_compare_exchange_n(&memory->lives, &none, (uint64_t)made,
					 false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return (struct shim_lives_node *)none;
	__atomic_store_n(&made->function, SHIM_NODE_LIVES, __ATOMIC_RELEASE);
	return made;
}

static void count_long_life(struct shim_memory_node *memory,
			    const struct shim_block *block, uint64_t clock)
{
	struct shim_lives_node *lives = (struct shim_lives_node *)memory->lives;
	unsigned bucket = (unsigned)(__builtin_clzll(tick_length) -
				     __builtin_clzll(clock));
	uint64_t *counter;

	note_live(*memory_tick);
	if (UNLIKELY(!lives) && !(lives = make_lives(memory)))
		return;
	if (clock >> bucket < tick_length)
		bucket--;
	if (bucket >= SHIM_LIVES_BUCKETS)
		bucket = SHIM_LIVES_BUCKETS - 1;
	counter = block->clock ? &lives->bucket[bucket] : &lives->unknown;
	if (shim_is_single_threaded())
		shim_local_add(counter, block->weight);
	else
		__atomic_fetch_add(counter, block->weight, __ATOMIC_RELAXED);
}

static inline void count_life(struct shim_memory_node *memory,
			      const struct shim_block *block)
{
	uint64_t clock;

	if (!memory_tick)
		return;
	clock = *memory_tick - block->clock;
	if (UNLIKELY(clock >= tick_length))
		count_long_life(memory, block, clock);
}

static void count_release(struct shim_memory_node *memory,
			  const struct shim_block *block, bool is_gone)
{
	uint64_t weight = block->weight;

	if (LIKELY(memory->owner == (uint64_t)tree_hot.tree &&
		   !tree_hot.shared)) {
		shim_local_add(&memory->releases, weight);
		shim_local_add(&memory->released_bytes, block->weight_bytes);
		if (block->is_last && is_gone)
			shim_local_add(&memory->temporary, weight);
	} else {
		__atomic_fetch_add(&memory->other_releases, weight,
				   __ATOMIC_RELAXED);
		__atomic_fetch_add(&memory->other_released_bytes,
				   block->weight_bytes, __ATOMIC_RELAXED);
	}
	count_life(memory, block);
}

static inline int64_t bytes_of(const struct shim_block *block)
{
	return (int64_t)block->weight_bytes;
}

static void on_allocation(struct shim_profiler *profiler,
			  const struct shim_block *block)
{
	struct shim_memory_node *memory = find_here();

	(void)profiler;
	if (UNLIKELY(!memory)) {
		shim_record_lost_other(SHIM_LOST_ALLOCATIONS, tree_hot.cause,
				       block->weight);
		return;
	}
	save_live(memory);
	count_allocation(memory, block);
	end_change(bytes_of(block));
	note_live(block->clock);
}

static void on_deallocation(struct shim_profiler *profiler,
			    const struct shim_block *block)
{
	struct shim_memory_node *memory = find_noted(*block->note);

	(void)profiler;
	if (UNLIKELY(!memory))
		return;
	begin_change(-bytes_of(block));
	save_live(memory);
	count_release(memory, block, true);
	end_change(-bytes_of(block));
}

/* The block belongs to the path that called realloc from now on. */
static void on_reallocation(struct shim_profiler *profiler,
			    const struct shim_block *before,
			    const struct shim_block *after)
{
	struct shim_memory_node *from = find_noted(*before->note);
	struct shim_memory_node *to;
	int64_t change;

	if (!from) {
		*after->note = 0;
		on_allocation(profiler, after);
		return;
	}
	to = find_here();
	if (UNLIKELY(!to)) {
		*after->note = 0;
		on_deallocation(profiler, before);
		shim_record_lost_other(SHIM_LOST_ALLOCATIONS, tree_hot.cause,
				       after->weight);
		return;
	}
	change = bytes_of(after) - bytes_of(before);
	begin_change(change);
	save_live(from);
	save_live(to);
	count_release(from, before, false);
	count_allocation(to, after);
	shim_local_add(&to->reallocations, after->weight);
	end_change(change);
	note_live(after->clock);
}

/* The nodes belong to the former recording. */
static void on_forked(struct shim_profiler *profiler)
{
	(void)profiler;
	heap = NULL;
	peak_tick = 0;
	generation = (generation + 1) & 0xffff;
	shim_get_allocation_counts(&former);
	memory_points_forked();
	memory_snapshots_forked();
}

/* The same in this process: the program may have released blocks unseen. */
static void on_recording_began(struct shim_profiler *profiler)
{
	on_forked(profiler);
	attached_generation = generation;
}

/* --- mappings --- */

static void on_mapping(struct shim_profiler *profiler,
		       const struct shim_mapping *mapping)
{
	struct shim_memory_node *memory = find_here();

	(void)profiler;
	if (!memory) {
		shim_record_lost_other(SHIM_LOST_MAPPINGS, tree_hot.cause, 1);
		return;
	}
	shim_local_add(&memory->mappings, 1);
	shim_local_add(&memory->mapped_bytes, mapping->size);
	*mapping->note = note_of(memory);
}

static void on_unmapping(struct shim_profiler *profiler,
			 const struct shim_mapping *mapping)
{
	struct shim_memory_node *memory = find_noted(*mapping->note);

	(void)profiler;
	if (memory)
		__atomic_fetch_add(&memory->unmapped_bytes, mapping->size,
				   __ATOMIC_RELAXED);
}

/* Like a block, the mapping belongs to the path that called mremap from now on. */
static void on_remapping(struct shim_profiler *profiler,
			 const struct shim_mapping *before,
			 const struct shim_mapping *after)
{
	on_unmapping(profiler, before);
	*after->note = 0;
	on_mapping(profiler, after);
}

/* --- leaks --- */

static enum shim_result on_reach(const struct shim_block *block,
				 enum shim_reach reach, void *data)
{
	struct shim_memory_node *memory;

	(void)data;
	memory = memory_of_note(*block->note);
	if (reach == SHIM_REACH_REACHED || !memory)
		return SHIM_OK;
	if (reach == SHIM_REACH_LOST) {
		memory->lost_blocks++;
		memory->lost_bytes += block->size;
	} else {
		memory->below_blocks++;
		memory->below_bytes += block->size;
	}
	return SHIM_OK;
}

/* Runs at the end of the process, after its exit handlers. */
static void on_runtime_shutdown_end(struct shim_profiler *profiler)
{
	uint64_t begin = now();
	enum shim_result result;

	(void)profiler;
	if (!heap)
		return;
	store_counts();
	if (memory_leaks_ms == 0) {
		heap->leaks = SHIM_LEAKS_OFF;
		return;
	}
	result = shim_heap_find_leaks(on_reach, NULL,
				      memory_leaks_ms * 1000000);
	heap->leaks_clock = now() - begin;
	heap->leaks = memory_leaks_of(result);
}

/* Called when the program or a user requests a snapshot. */
static void on_heap_snapshot_requested(struct shim_profiler *profiler,
				       uint32_t *number)
{
	(void)profiler;
	*number = memory_snapshot_take(memory_leaks_ms);
}

/* --- arguments --- */

static void take_option(enum option_name name, const struct option_value *value)
{
	switch (name) {
	case OPTION_memory_LEAKS: memory_leaks_ms = value->number; break;
	case OPTION_memory_SNAPSHOTS: snapshots_ms = value->number; break;
	case OPTION_memory_PERIOD: period = value->number; break;
	case OPTION_memory_SEED: seed = value->number; break;
	default: unwinds = true;
	}
}

/* A period of one byte means every allocation. */
static bool enable_events(struct shim_profiler_handle *handle)
{
	if (period <= 1) {
		period = 0;
		return shim_profiler_enable_allocations(handle) == SHIM_OK;
	}
	return shim_profiler_enable_sampled_allocations(handle, period, seed) ==
	       SHIM_OK;
}

static struct shim_profiler_handle *handle;

/* While nothing is recorded.  (Another thread may be calling a callback, so there is always
 * one.) */
static void ignore_allocation(struct shim_profiler *profiler,
			      const struct shim_block *block)
{
	(void)profiler;
	(void)block;
}

static void ignore_mapping(struct shim_profiler *profiler,
			   const struct shim_mapping *mapping)
{
	(void)profiler;
	(void)mapping;
}

/* The block leaves the recording. */
static void on_last_reallocation(struct shim_profiler *profiler,
				 const struct shim_block *before,
				 const struct shim_block *after)
{
	on_deallocation(profiler, before);
	*after->note = 0;
}

static void on_last_remapping(struct shim_profiler *profiler,
			      const struct shim_mapping *before,
			      const struct shim_mapping *after)
{
	on_unmapping(profiler, before);
	*after->note = 0;
}

/* The releases of recorded blocks are recorded in any case. */
static bool record_memory(bool is_on)
{
	if (is_on && !tree_return_paths("memory"))
		return false;
	shim_profiler_on_allocation(handle,
				    is_on ? on_allocation : ignore_allocation);
	shim_profiler_on_mapping(handle, is_on ? on_mapping : ignore_mapping);
	shim_profiler_on_reallocation(handle, is_on ? on_reallocation :
						      on_last_reallocation);
	shim_profiler_on_remapping(handle,
				   is_on ? on_remapping : on_last_remapping);
	if (!is_on)
		tree_leave_paths();
	return true;
}

static bool start_memory(void)
{
	node_slot = path_add_slot();
	if (!tree_need_paths("memory"))
		return false;
	memory_tick = shim_clock_coarse(&tick_length);
	if (shim_record_meta())
		memory_snapshot_period = snapshots_ms *
					 shim_record_meta()->clock_hz / 1000;
	handle = shim_profiler_create(NULL);
	if (!handle || !enable_events(handle)) {
		shim_record_log(
			"memory: allocations cannot be recorded in this program");
		return false;
	}
	shim_profiler_on_allocation(handle, on_allocation);
	shim_profiler_on_deallocation(handle, on_deallocation);
	shim_profiler_on_reallocation(handle, on_reallocation);
	shim_profiler_on_mapping(handle, on_mapping);
	shim_profiler_on_unmapping(handle, on_unmapping);
	shim_profiler_on_remapping(handle, on_remapping);
	shim_profiler_on_forked(handle, on_forked);
	shim_profiler_on_recording_began(handle, on_recording_began);
	shim_profiler_on_heap_snapshot_requested(handle,
						 on_heap_snapshot_requested);
	shim_profiler_on_runtime_shutdown_end(handle, on_runtime_shutdown_end);
	return true;
}

/* Called again when another profiler was started later. */
static void begin_memory(void)
{
	struct shim_heap_node *made = __atomic_load_n(&heap, __ATOMIC_ACQUIRE);

	tree_begin();
	if (made)
		made->calls = tree_is_asked;
}

BUILTIN(memory, take_option, start_memory, .begin = begin_memory,
	.record = record_memory, .is_too_late = tree_paths_are_too_late);
