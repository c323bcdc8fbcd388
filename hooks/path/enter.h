/*
 * The fast path: enter and leave, as templates for hooks.  calls.c makes the hooks of a
 * tree without a writer.  A profiler that writes each call makes its own hooks, and
 * defines before it includes this file:
 *
 *     WRITE_SHIFT, write_enter_word(time, hits), write_leave_word(time)
 *     write_reserve(trace, time, word, becomes, &at), write_put(trace, at, time, word)
 */
#ifndef PATH_ENTER_H
#define PATH_ENTER_H

#include "path/opening.h"

/*
 * Uses values that are known earlier than the parent.  Otherwise every enter would wait
 * for the leave before it.
 *
 * Functions and frames are nearly always multiples of 16, so the sum is the offset of a
 * pointer without a shift: the call site supplies the other bits.
 */
static inline __attribute__((always_inline)) uint32_t
hint_of(uint64_t function, const void *site, uint64_t frame)
{
	return ((uint32_t)function + (uint32_t)frame) ^
	       (uint32_t)(uintptr_t)site;
}

/* Ends a call during which, or during whose leave, the clock has ticked. */
__attribute__((unused)) static COLD void leave_ticked(struct shim_node *node,
						      uint64_t start,
						      uint64_t before,
						      uint64_t after)
{
	const volatile uint64_t *clock = tree_hot.tick;
	uint64_t end;

	if (UNLIKELY(tree_is_cpu)) {
		node_leave_ticked(node, start, before, after);
		return;
	}
	end = time_of_tick(before);
	if (after != tree_hot.last)
		node_ticked(node, before, after);
	/* The clock of @before has ended during the call, unnoticed. */
	if (UNLIKELY(tree_hot.tick != clock))
		end = tree_hot.clock;
	/* The kernel's tick may be earlier than profrun's last one. */
	if (end <= start)
		return;
	shim_local_add(&node->time, end - start);
	node_choose_clock(node);
}

static inline __attribute__((always_inline)) void
enter(uint64_t function, const void *site, uintptr_t sp, enum clock clock,
      bool is_traced)
{
	uint64_t time = clock == COARSE ? *tree_hot.tick : 0, after;
	uint64_t frame = frame_here(sp);
	struct shim_node **place = cache_place(hint_of(function, site, frame));
	struct shim_node *node, *current;
	struct trace *trace = NULL;
	uint32_t word = 0;
	char *at = NULL;

	if (clock == EXACT || is_traced) {
		if (UNLIKELY(is_far(frame))) {
			tree_enter_missed(function, site, sp, tree_hot.current,
					  0);
			return;
		}
		time = shim_clock_read();
	}
	current = tree_hot.current;
	node = *place;
	if (UNLIKELY(frame > current->frame) ||
	    UNLIKELY(node->function != function) ||
	    UNLIKELY(node->parent != (uint64_t)current)) {
		tree_enter_missed(function, site, sp, tree_hot.current, time);
		return;
	}
	if (is_traced) {
		trace = tree_hot.trace;
		word = write_enter_word(time >> WRITE_SHIFT, node->hits);
		node->frame = frame;
		if (!write_reserve(trace, time >> WRITE_SHIFT, word, node,
				   &at)) {
			node->frame = 0;
			tree_enter_missed(function, site, sp, tree_hot.current,
					  0);
			return;
		}
	}
	/* The node becomes current first: from now on, calls of a signal handler are
	 * its children.  (The compiler keeps this order: every store below may alias
	 * it.) */
	__atomic_store_n(&tree_hot.current, node, __ATOMIC_RELEASE);
	if (!is_traced)
		node->frame = frame;
	if (clock != TRACED)
		shim_local_add(&node->calls, 1);
	if (clock == COARSE) {
		after = *tree_hot.tick;
		node->start = tree_hot.clock;
		if (UNLIKELY(after != tree_hot.last))
			node_enter_ticked(current, time, after);
	} else if (clock == EXACT) {
		node->start = time;
	}
	if (is_traced)
		write_put(trace, at, time >> WRITE_SHIFT, word);
}

static inline __attribute__((always_inline)) void
leave(uint64_t function, const void *site, uintptr_t sp, enum clock clock,
      bool is_traced)
{
	struct shim_node *node = tree_hot.current;
	struct shim_node *parent = (struct shim_node *)__atomic_load_n(
		&node->parent, __ATOMIC_ACQUIRE); /* first: parent_of() */
	struct shim_extra_node *extra = NULL;
	uint64_t now = clock == COARSE ? *tree_hot.tick : 0, start;
	uint64_t duration, last = 0, after;
	struct trace *trace = NULL;
	uint32_t word = 0;
	char *at = NULL;

	if (UNLIKELY(node->function != function)) {
		tree_leave_missed(function, site, sp);
		return;
	}
	if (clock == EXACT)
		extra = (struct shim_extra_node *)node->extra;
	if (clock == EXACT || is_traced)
		now = shim_clock_read();
	if (is_traced) {
		trace = tree_hot.trace;
		word = write_leave_word(now >> WRITE_SHIFT);
		if (!write_reserve(trace, now >> WRITE_SHIFT, word, parent,
				   &at)) {
			tree_leave_missed(function, site, sp);
			return;
		}
	}
	start = clock == COUNTS || clock == TRACED ? now : node->start;
	duration = now - start;
	if (clock == EXACT && LIKELY(extra != NULL))
		last = exchange_last(extra, duration);
	__atomic_store_n(&tree_hot.current, parent, __ATOMIC_RELEASE);
	node->frame = 0;
	if (clock == COARSE) {
		after = *tree_hot.tick;
		if (UNLIKELY(after != tree_hot.last) ||
		    UNLIKELY(tree_hot.clock != start))
			leave_ticked(node, start, now, after);
	} else if (clock == EXACT) {
		shim_local_add(&node->time, duration);
		if (LIKELY(extra != NULL))
			count_duration(extra, last);
		else
			node_add_extra(node, duration);
	}
	if (is_traced)
		write_put(trace, at, now >> WRITE_SHIFT, word);
}

/* The program's stack pointer, in a hook that was called directly. */
#define SP SHIM_CALLER_SP

#define HOOKS(name, clock, is_traced) \
	static HOT void name##_enter(shim_function function, const void *site) \
	{ \
		enter(function, site, SP, clock, is_traced); \
	} \
	static HOT void name##_leave(shim_function function, const void *site) \
	{ \
		leave(function, site, SP, clock, is_traced); \
	}

static inline __attribute__((always_inline)) bool must_look_back(void)
{
	return UNLIKELY(tree_hot.starts !=
			__atomic_load_n(&tree_starts, __ATOMIC_RELAXED));
}

/* What looks back is apart, so that the others keep no register for it. */
#define RESTARTED(name, clock, is_traced) \
	static COLD void name##_enter_late(shim_function function, \
					   const void *site, uintptr_t sp) \
	{ \
		tree_look_back(function, site, sp, true); \
		enter(function, site, sp, clock, is_traced); \
	} \
	static COLD void name##_leave_late(shim_function function, \
					   const void *site, uintptr_t sp) \
	{ \
		tree_look_back(function, site, sp, false); \
		leave(function, site, sp, clock, is_traced); \
	} \
	static HOT void name##_enter_at(shim_function function, \
					const void *site, uintptr_t sp) \
	{ \
		if (must_look_back()) \
			name##_enter_late(function, site, sp); \
		else \
			enter(function, site, sp, clock, is_traced); \
	} \
	static HOT void name##_leave_at(shim_function function, \
					const void *site, uintptr_t sp) \
	{ \
		if (must_look_back()) \
			name##_leave_late(function, site, sp); \
		else \
			leave(function, site, sp, clock, is_traced); \
	} \
	static HOT void name##_enter_again(shim_function function, \
					   const void *site) \
	{ \
		if (must_look_back()) \
			name##_enter_late(function, site, SP); \
		else \
			enter(function, site, SP, clock, is_traced); \
	} \
	static HOT void name##_leave_again(shim_function function, \
					   const void *site) \
	{ \
		if (must_look_back()) \
			name##_leave_late(function, site, SP); \
		else \
			leave(function, site, SP, clock, is_traced); \
	}

#endif
