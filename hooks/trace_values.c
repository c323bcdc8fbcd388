/*
 * Arguments and results in the trace: trace:args=FUNCTION, results=FUNCTION.
 *
 * Calls whose arguments are wanted take the slow path, where they can be asked for;
 * others are as fast as ever.  Results need a leave hook of the kind that may ask, for
 * which there is a handle of its own, and then all calls pay for there being two.
 * Values are written as text, as they are: what a pointer leads to is another thing
 * when the trace is read.
 */
#include "calltree.h"

#include <shim/info.h>
#include <shim/values.h>

#include <shim/banned.h>

#define ASKED	       128
#define PARAMETERS_MAX 12
#define NAME_SIZE      24

bool trace_asks_arguments;

static bool asks_results;

/* What is known of a function whose arguments are recorded. */
struct asked {
	shim_function function;		/* stored last */
	uint32_t parameters;
	bool is_known;
	struct {
		shim_type type;
		char name[NAME_SIZE];
	} parameter[PARAMETERS_MAX];
};

static struct asked asked[ASKED];
static uint32_t asked_count;

/* By a function's number: 0: not decided yet, 1: no, 2: yes. */
#define DECISIONS 65536u
static uint8_t *decisions;

/* --- text --- */

struct text {
	char memory[SHIM_TRACE_TEXT + 1];
	uint32_t size;
};

static void add(struct text *text, const char *string)
{
	while (*string && text->size < SHIM_TRACE_TEXT)
		text->memory[text->size++] = *string++;
	text->memory[text->size] = '\0';
}

/* "<optimized out>" */
static void add_reason(struct text *text, const char *reason)
{
	add(text, "<");
	add(text, reason ? reason : "?");
	add(text, ">");
}

static void add_missing(struct text *text, shim_elt_info info,
			uint32_t position)
{
	enum shim_unavailable reason;
	enum shim_result r = shim_get_value_reason(info, position, &reason);

	add_reason(text, r == SHIM_OK ? shim_unavailable_text(reason) :
					shim_result_text(r));
}

static void add_value(struct text *text, shim_type type, const void *value)
{
	uint32_t room = SHIM_TRACE_TEXT + 1 - text->size, total = 0;
	enum shim_result r;

	if (room < 2)
		return;
	r = shim_print_value(type, value, 0, room, &total,
			     text->memory + text->size);
	if (r != SHIM_OK) {
		add_reason(text, shim_result_text(r));
		return;
	}
	while (text->size < SHIM_TRACE_TEXT && text->memory[text->size])
		text->size++;
}

/* --- which functions --- */

static COLD bool decide(uint32_t number, shim_function function)
{
	bool is_wanted;

	shim_image_note(function);
	is_wanted = trace_names(function, TRACE_ARGUMENTS);
	if (number && number < DECISIONS)
		__atomic_store_n(&decisions[number], is_wanted ? 2 : 1,
				 __ATOMIC_RELAXED);
	return is_wanted;
}

bool trace_asks(shim_function function)
{
	enum shim_lost cause;
	uint32_t number;
	uint8_t decision;

	if (!trace_asks_arguments)
		return false;
	number = trace_number(function, &cause);
	decision = number < DECISIONS ?
			   __atomic_load_n(&decisions[number],
					   __ATOMIC_RELAXED) : 0;
	return decision ? decision == 2 : decide(number, function);
}

/* In a child numbers are others. */
void trace_values_restart(void)
{
	if (decisions)
		shim_memory_empty(decisions, DECISIONS);
}

static void describe(struct asked *about)
{
	if (shim_get_parameter_count(about->function, &about->parameters) !=
	    SHIM_OK)
		return;
	if (about->parameters > PARAMETERS_MAX)
		about->parameters = PARAMETERS_MAX;
	for (uint32_t i = 0; i < about->parameters; i++)
		if (shim_get_parameter_info(about->function, i,
					    &about->parameter[i].type,
					    NAME_SIZE, NULL,
					    about->parameter[i].name) !=
		    SHIM_OK)
			return;
	about->is_known = true;
}

/* Two threads may describe it at once: then it is there twice. */
static const struct asked *find_asked(shim_function function,
				      struct asked *own)
{
	uint32_t count = __atomic_load_n(&asked_count, __ATOMIC_ACQUIRE), i;

	for (i = 0; i < count && i < ASKED; i++)
		if (__atomic_load_n(&asked[i].function, __ATOMIC_ACQUIRE) ==
		    function)
			return &asked[i];
	own->function = function;
	own->is_known = false;
	describe(own);
	i = __atomic_fetch_add(&asked_count, 1, __ATOMIC_ACQ_REL);
	if (i >= ASKED)
		return own;
	own->function = 0;
	asked[i] = *own;
	__atomic_store_n(&asked[i].function, function, __ATOMIC_RELEASE);
	own->function = function;
	return own;
}

/* --- the records --- */

/* (Not inlined: most calls need no such frame.) */
static COLD void add_arguments(struct text *text, shim_function function,
			       shim_elt_info info)
{
	struct {
		struct shim_argument_info head;
		struct shim_argument_range more[2 * PARAMETERS_MAX];
	} memory;
	struct shim_argument_info *arguments = &memory.head;
	uint32_t size = sizeof(memory);
	struct asked own;
	const struct asked *about = find_asked(function, &own);
	enum shim_result r;

	r = shim_get_function_enter3_info(function, info, NULL, &size,
					  arguments);
	if (r != SHIM_OK || !about->is_known) {
		add_reason(text, r != SHIM_OK ? shim_result_text(r) : NULL);
		return;
	}
	for (uint32_t i = 0; i < arguments->ranges_count; i++) {
		const struct shim_argument_range *range = &arguments->ranges[i];

		add(text, i ? ", " : "");
		if (i >= about->parameters) {
			add(text, "...");
			return;
		}
		add(text, about->parameter[i].name);
		add(text, about->parameter[i].name[0] ? " = " : "");
		if (range->start)
			add_value(text, about->parameter[i].type,
				  (const void *)range->start);
		else
			add_missing(text, info, i);
	}
}

void trace_put_arguments(shim_function function, shim_elt_info info)
{
	struct text text;

	text.size = 0;
	text.memory[0] = '\0';
	if (info)
		add_arguments(&text, function, info);
	else
		add_reason(&text, "in a signal handler");
	if (text.size)
		trace_text(SHIM_TRACE_ARGUMENTS, text.memory, text.size);
}

static void add_result(struct text *text, shim_function function,
		       shim_elt_info info)
{
	struct shim_argument_range range = { 0, 0 };
	enum shim_type_kind kind = SHIM_TYPE_UNKNOWN;
	shim_frame_info frame;
	shim_type type;
	enum shim_result r = shim_get_result_type(function, &type);

	if (r == SHIM_OK)
		shim_get_type_info(type, &kind, NULL, 0, NULL, NULL);
	if (kind == SHIM_TYPE_VOID)
		return;
	if (r == SHIM_OK)
		r = shim_get_function_leave3_info(function, info, &frame,
						  &range);
	if (r != SHIM_OK)
		add_reason(text, shim_result_text(r));
	else if (range.start)
		add_value(text, type, (const void *)range.start);
	else
		add_missing(text, info, SHIM_RESULT);
}

/* Is the call that this leave ends in the trace? */
static bool is_recorded(shim_function function)
{
	const struct tree *tree = tree_hot.tree;
	const struct shim_node *node = tree_hot.current;

	if (!tree || tree_hot.shared)
		return false;
	if (node == &tree_nobody)
		node = tree->current;
	return address_of(node) == function &&
	       (!(node->frame & FRAME_LEFT_OUT) || trace_has_waited(node, now()));
}

static void put_result(union shim_function_or_client function,
		       shim_elt_info info)
{
	struct text text;

	if (!is_recorded(function.function))
		return;
	text.size = 0;
	text.memory[0] = '\0';
	add_result(&text, function.function, info);
	if (text.size)
		trace_text(SHIM_TRACE_RESULT, text.memory, text.size);
}

/* Asked once for each function. */
static uintptr_t choose(shim_function function, void *unused, int *hook)
{
	(void)unused;
	*hook = trace_names(function, TRACE_RESULTS);
	return function;
}

/* --- start --- */

void trace_values_prepare(bool arguments, bool results)
{
	trace_asks_arguments = arguments;
	asks_results = results;
	if (arguments)
		decisions = shim_memory(DECISIONS);
	if (!decisions)
		trace_asks_arguments = false;
}

bool trace_values_start(void)
{
	struct shim_handle *handle;

	if (!asks_results)
		return true;
	handle = shim_profiler_create(NULL);
	return handle &&
	       shim_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
					   SHIM_ENABLE_FUNCTION_RETVAL) ==
		       SHIM_OK &&
	       shim_set_function_id_mapper2(handle, choose, NULL) == SHIM_OK &&
	       shim_set_enter_leave_function_hooks3_with_info(
		       handle, NULL, put_result, NULL) == SHIM_OK;
}
