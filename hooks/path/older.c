/*
 * Calls that were open when shim was attached to a running program.  At the first event of
 * a thread that ran then, its tree gets them from the stack, so that the next calls have
 * their callers, and the leaves of these calls their nodes.
 *
 * Such a node does not count its call, which had begun before the recording.  It stands
 * for this call only: another call of the same path makes a second node, so no average
 * contains the time since the attach.
 */
#include "path/older.h"

#include "path/nodes.h"
#include "path/opening.h"
#include "path/threads.h"

#include <shim/builtin.h>
#include <shim/stack.h>

#include <shim/banned.h>

/* The nodes of a thread, which are in no table. */
struct older_nodes {
	struct older_nodes *next;
	uint32_t count;
	struct shim_node *nodes[];
};

static struct older_nodes *lists;

bool tree_is_older(void)
{
	return tree_hot.retry_clock == 0 && shim_has_open_before();
}

static void add_list(struct older_nodes *list)
{
	list->next = __atomic_load_n(&lists, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&lists, &list->next, list, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

void older_each(void (*each)(struct shim_node *node, void *argument),
		void *argument)
{
	for (struct older_nodes *list =
		     __atomic_load_n(&lists, __ATOMIC_ACQUIRE);
	     list; list = list->next)
		for (uint32_t i = 0; i < list->count; i++)
			each(list->nodes[i], argument);
}

void older_forget_all(void)
{
	lists = NULL;
}

struct before {
	uint64_t clock; /* of the attach */
	uint32_t count;
	struct shim_open_before *calls;
};

/* Whether the call that begins with @event is the innermost frame itself. */
static bool is_entered(const struct first_event *event,
		       const struct before *before)
{
	return event->entered && before->count > 0 &&
	       before->calls[0].function == event->entered;
}

/* A jump to the leave hook has left the frame; an inlined function has none. */
static bool is_missing(const struct first_event *event,
		       const struct before *before)
{
	return event->left &&
	       (before->count == 0 || before->calls[0].function != event->left);
}

/* Opens @function's call on the stack in use; false without memory. */
static bool open_older(struct tree *tree, uint64_t function, uintptr_t sp,
		       uint64_t clock, struct older_nodes *list)
{
	struct shim_node *node = node_make_older(tree, tree->current, function);

	if (!node)
		return false;
	open_call(node, frame_of(sp, tree->stack->low));
	node->calls = 0;
	if (!tree_is_traced && !tree_is_cpu && tree_mode != COUNTS)
		node->start = clock;
	tree->current = list->nodes[list->count++] = node;
	return true;
}

/* Opens the calls that are on the stack in use; false without memory. */
static bool open_on_stack(struct tree *tree, const struct first_event *event,
			  const struct before *before, struct older_nodes *list)
{
	for (uint32_t i = before->count; i-- > is_entered(event, before);)
		if (is_on(tree, tree->stack, before->calls[i].sp) &&
		    !open_older(tree, before->calls[i].function,
				before->calls[i].sp, before->clock, list))
			return false;
	return true;
}

/* Opens all calls, first those on the thread's own stack.  The event may be on the signal
 * stack of a handler. */
static void open_all(struct tree *tree, const struct first_event *event,
		     const struct before *before, struct older_nodes *list)
{
	if (!open_on_stack(tree, event, before, list))
		return;
	if (!is_on(tree, tree->stack, event->sp)) {
		tree_switch_stack(tree, event->sp);
		if (!open_on_stack(tree, event, before, list))
			return;
	}
	if (is_missing(event, before))
		open_older(tree, event->left, event->sp, before->clock, list);
}

/* The time since the attach belongs to the innermost call. */
static void charge(struct shim_node *innermost, uint64_t clock)
{
	if (tree_is_traced || tree_is_cpu || tree_mode != COARSE)
		return;
	tree_hot.clock = clock;
	tree_hot.last = 0;
	tree_begin_own(innermost);
}

static void open_in(struct tree *tree, const struct first_event *event,
		    const struct before *before)
{
	struct older_nodes *list = shim_memory_map(
		sizeof(*list) + (before->count + 1) * sizeof(*list->nodes));

	if (!list)
		return;
	if (tree->trace)
		path_writer->copying(tree);
	open_all(tree, event, before, list);
	if (tree->trace)
		path_writer->copied(tree);
	tree_publish(tree, tree->stack, tree->current);
	add_list(list);
}

/* The recording begins a moment after the attach. */
static uint64_t not_before_the_recording(uint64_t clock)
{
	const struct shim_meta *meta = shim_record_meta();

	return meta && clock < meta->first_clock ? meta->first_clock : clock;
}

void tree_open_older(struct tree *tree, const struct first_event *event)
{
	size_t size = SHIM_STACK_DEPTH_MAX * sizeof(struct shim_open_before);
	struct before before = { .calls = shim_memory_map(size) };

	if (!before.calls)
		return;
	before.count = shim_list_open_before(before.calls, SHIM_STACK_DEPTH_MAX,
					     &before.clock);
	if (before.clock)
		before.clock = not_before_the_recording(before.clock);
	tree->attach_clock = before.clock;
	if (before.count > 0 || event->left) {
		if (!tree->trace)
			tree->root->start = before.clock;
		open_in(tree, event, &before);
		charge(tree->current, before.clock);
	}
	shim_memory_unmap(before.calls, size);
}

void tree_open_older_here(struct tree *tree)
{
	const struct first_event event = { tree->left ? tree->event_sp :
							tree->stack->high,
					   tree->entered, tree->left };
	size_t size = SHIM_STACK_DEPTH_MAX * sizeof(struct shim_open_before);
	struct before before = { .clock = tree->attach_clock,
				 .calls = shim_memory_map(size) };

	if (!before.calls)
		return;
	tree->stack->is_new = false;
	before.count = shim_list_open_now(before.calls, SHIM_STACK_DEPTH_MAX);
	if (before.count > 0 || event.left)
		open_in(tree, &event, &before);
	shim_memory_unmap(before.calls, size);
}
