/*
 * The hooks of the trace profiler, and its interface with the call-path engine, for
 * which trace is the writer of each call.
 */
#include "trace/trace.h"

#define WRITE_SHIFT	 TRACE_SHIFT
#define write_enter_word trace_enter_word
#define write_leave_word trace_leave_word
#define write_reserve	 trace_reserve
#define write_put	 trace_put

#include "path/enter.h"
#include "path/layout.h"
#include "trace/trace_layout.h"

#include <stddef.h>

#include <shim/banned.h>

#define IS_AT(where, field, offset) \
	_Static_assert(offsetof(struct where, field) == (offset), "layout.h")

IS_AT(hot, trace, LAYOUT_HOT_TRACE);
IS_AT(shim_node, hits, LAYOUT_NODE_HITS);
IS_AT(trace, cursor, LAYOUT_TRACE_CURSOR);
IS_AT(trace, limit, LAYOUT_TRACE_LIMIT);
IS_AT(trace, last, LAYOUT_TRACE_LAST);
IS_AT(trace, busy, LAYOUT_TRACE_BUSY);
IS_AT(trace, word, LAYOUT_TRACE_WORD);
IS_AT(trace, becomes, LAYOUT_TRACE_BECOMES);
IS_AT(trace, settled, LAYOUT_TRACE_SETTLED);
_Static_assert(TRACE_TIME_MASK == LAYOUT_TRACE_TIME_MASK, "trace_layout.h");

/* --- hooks --- */

/* A leave that does not count. */
HOT void tree_traced_leave_any(shim_function function, const void *site)
{
	leave(function, site, SP, COUNTS, true);
}

#ifndef HAS_ASSEMBLY /* trace_x86_64.S */
HOT void tree_traced_enter(shim_function function, const void *site)
{
	enter(function, site, SP, TRACED, true);
}

HOT void tree_traced_leave(shim_function function, const void *site)
{
	leave(function, site, SP, COUNTS, true);
}
#endif

HOOKS(exact_traced, EXACT, true)

static HOT void counts_traced_enter(shim_function function, const void *site)
{
	enter(function, site, SP, COUNTS, true);
}

static const shim_site_hook hooks[4][2] = {
	/* Leaves do not count calls. */
	[COUNTS] = { counts_traced_enter, tree_traced_leave },
	[EXACT] = { exact_traced_enter, exact_traced_leave },
	[TRACED] = { tree_traced_enter, tree_traced_leave },
};

RESTARTED(counts_traced, COUNTS, true)
RESTARTED(exact_traced, EXACT, true)
RESTARTED(traced, TRACED, true)

static const shim_site_hook hooks_again[4][2] = {
	[COUNTS] = { counts_traced_enter_again, counts_traced_leave_again },
	[EXACT] = { exact_traced_enter_again, exact_traced_leave_again },
	[TRACED] = { traced_enter_again, traced_leave_again },
};

static const shim_frame_hook hooks_at[4][2] = {
	[COUNTS] = { counts_traced_enter_at, counts_traced_leave_at },
	[EXACT] = { exact_traced_enter_at, exact_traced_leave_at },
	[TRACED] = { traced_enter_at, traced_leave_at },
};

/* --- calls off the fast path --- */

/* Writes a short record, if that can be done now. */
static bool trace_short(uint64_t time, uint32_t word)
{
	struct trace *trace = tree_hot.trace;
	char *at;

	if (tree_hot.shared || !trace ||
	    !trace_reserve(trace, time, word, tree_hot.current, &at))
		return false;
	trace_put(trace, at, time, word);
	return true;
}

static void on_opened(struct shim_node *node)
{
	uint64_t time = node->start >> TRACE_SHIFT;
	uint32_t number = node_number(node);

	if ((node->function & SHIM_NODE_EXACT) ||
	    number >= SHIM_TRACE_FUNCTIONS ||
	    !trace_short(time, trace_enter_word(time, number)))
		trace_opened(node);
}

static void on_closed(struct shim_node *node, bool is_unwound)
{
	uint64_t time = now() >> TRACE_SHIFT;

	if (is_unwound || node->frame & FRAME_LEFT_OUT ||
	    !trace_short(time, trace_leave_word(time)))
		trace_closed(node, is_unwound);
}

/* Whether the call is in the trace, or may be added later. */
static bool is_traced_call(const struct shim_node *node)
{
	return !(node->frame & FRAME_LEFT_OUT) || frame_waits(node->frame);
}

static void on_opened_with(struct shim_node *node, void *arguments)
{
	struct trace_record *record = arguments;

	if (!is_traced_call(node))
		return;
	trace_put_values(record);
	record->size = 0;
}

/* False if the arguments of @function are not recorded. */
static __attribute__((noinline)) bool enter_asked(shim_function function,
						  const void *site,
						  uintptr_t sp,
						  shim_elt_info info)
{
	struct trace_record record;
	enum trace_answer answer = trace_ask(function, info, &record);
	bool is_there = answer == TRACE_AS_BYTES;
	struct shim_node *node;

	if (answer == TRACE_NOT_ASKED)
		return false;
	tree_begin_arguments(function, site, sp);
	node = tree_enter_group(function, 0, sp, is_there ? &record : NULL);
	if (!node || !is_traced_call(node))
		return true;
	if (is_there && record.size)
		trace_put_values(&record);
	else if (answer == TRACE_AS_TEXT)
		trace_say_arguments(function, info);
	return true;
}

/* --- paths, stacks and forks --- */

/* (Without memory for the trace, calltree still counts the call.) */
static uint64_t choose(struct tree *tree, const struct shim_node *parent,
		       uint64_t function)
{
	uint32_t number = TRACE_LEFT_OUT;

	if (!trace_leaves_out(parent, function))
		number = trace_number(function, &tree->lost_cause);
	if (number == 0 && !tree_has_file)
		return PATH_LOST;
	if (number == 0)
		number = TRACE_LEFT_OUT;
	/* The fast path handles only small numbers. */
	return number >= SHIM_TRACE_FUNCTIONS || trace_options.min_clock ||
			       trace_is_counted(function) ||
			       trace_asks(function) ?
		       number | PATH_SLOW :
		       number;
}

/* Calls that wait on the old stack are written before records of the new one. */
static void on_switching(struct tree *tree, const struct stack *to)
{
	const struct stack *from = tree->stack;

	while (from->is_signal && from->interrupted)
		from = from->interrupted;
	if (to->is_signal || to == from)
		return;
	trace_say_waiting(tree, tree->current);
	tree->trace->info->waiting = 0;
}

static void on_doubted(struct tree *tree, struct shim_node *node)
{
	(void)node;
	shim_local_add(&tree->trace->info->filtered, 1);
}

static void on_copying(struct tree *tree)
{
	tree->trace->is_copying = true;
	trace_set_limit(tree->trace);
}

static void on_copied(struct tree *tree)
{
	trace_announce(tree, false);
}

static void on_renewed(void)
{
	trace_functions_restart();
	trace_values_restart();
	trace_types_restart();
}

static void on_forked(void)
{
	trace_functions_forked();
	trace_values_restart();
	trace_types_restart();
}

/* --- cost of a call --- */

static struct trace *measure(void)
{
	static struct trace measured;
	static char records[4096];

	measured = (struct trace){
		.cursor = (uint64_t)records,
		.limit = (uint64_t)records + sizeof(records),
		.last = shim_clock_read() >> TRACE_SHIFT,
	};
	return &measured;
}

/* --- the interface --- */

/* Runs after the other handles exist, because the hooks of the newest handle run
 * first. */
static void begin_hooks(struct shim_profiler_handle *handle)
{
	(void)handle;
	if (!trace_values_start())
		shim_record_log("trace: results cannot be recorded");
}

const struct path_client trace_client = {
	.begin = begin_hooks,
	.forked = on_forked,
	.renewed = on_renewed,
	.image_gone = trace_forget,
};

const struct path_client trace_asking_client = {
	.begin = begin_hooks,
	.forked = on_forked,
	.renewed = on_renewed,
	.image_gone = trace_forget,
	.wants_arguments = trace_asks,
	.enter = enter_asked,
};

const struct path_writer trace_writer = {
	.hooks = hooks,
	.again = hooks_again,
	.at = hooks_at,
	.make = trace_make,
	.thread_begins = trace_thread_begins,
	.thread_ended = trace_thread_ended,
	.thread_named = trace_thread_named,
	.closing = trace_close,
	.choose = choose,
	.opened = on_opened,
	.closed = on_closed,
	.open = trace_open,
	.close = trace_close_short,
	.open_with = trace_open_asked,
	.opened_with = on_opened_with,
	.lost = trace_lose,
	.settle = trace_settle,
	.switching = on_switching,
	.switched = trace_switch_track,
	.copying = on_copying,
	.copied = on_copied,
	.restarted = trace_say_waiting,
	.doubted = on_doubted,
	.measure = measure,
};
