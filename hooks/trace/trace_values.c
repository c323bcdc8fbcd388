/*
 * Records arguments and results in the trace: trace:args=FUNCTION, results=FUNCTION.
 *
 * Calls whose arguments are recorded take the slow path, which can read them; all other
 * calls keep the fast path.  Results need a leave hook with frame information, and so a
 * second handle, which all calls then pay for.
 *
 * Values are recorded as bytes; N.values has their types (trace_types.c).  The target
 * of a pointer may have changed when the trace is read, so the target is written as
 * text immediately.
 */
#include "trace/trace.h"

#include <shim/info.h>

#include <shim/banned.h>

#define NAME_SIZE  24
#define TEXT_LEAST 16 /* least room for a text that is cut */

bool trace_asks_arguments;

static bool asks_results;

/* By the number of a function: NULL before the decision; &refused; &trace_undescribed;
 * or the description. */
#define FUNCTIONS (1u << 18)
static const struct trace_values **arguments_of, **results_of;

static const struct trace_values refused;

/* --- text --- */

struct text {
	char memory[SHIM_TRACE_TEXT + 1];
	uint32_t size, room;
};

static void clear_text(struct text *text)
{
	text->memory[0] = '\0';
	text->size = 0;
	text->room = SHIM_TRACE_TEXT;
}

static void add_text(struct text *text, const char *string)
{
	while (*string && text->size < text->room)
		text->memory[text->size++] = *string++;
	text->memory[text->size] = '\0';
}

/* Adds a reason, as in "<optimized out>". */
static void add_reason(struct text *text, const char *reason)
{
	add_text(text, "<");
	add_text(text, reason ? reason : "?");
	add_text(text, ">");
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
	uint32_t room = text->room + 1 - text->size, total = 0;
	enum shim_result r;

	if (room < 2)
		return;
	r = shim_print_value(type, value, 0, room, &total,
			     text->memory + text->size);
	if (r != SHIM_OK) {
		add_reason(text, shim_result_text(r));
		return;
	}
	while (text->size < text->room && text->memory[text->size])
		text->size++;
}

/* --- which functions --- */

static const struct trace_values **place_of(const struct trace_values **all,
					    uint32_t number)
{
	return all && number > 0 && number < FUNCTIONS ? &all[number] : NULL;
}

static COLD bool decide_arguments(const struct trace_values **place,
				  shim_function function)
{
	bool is_wanted;

	shim_image_note(function);
	is_wanted = trace_names(function, TRACE_ARGUMENTS);
	if (place)
		__atomic_store_n(place,
				 is_wanted ? &trace_undescribed : &refused,
				 __ATOMIC_RELAXED);
	return is_wanted;
}

bool trace_asks(shim_function function)
{
	const struct trace_values **place, *about;
	enum shim_lost cause;

	if (!trace_asks_arguments)
		return false;
	place = place_of(arguments_of, trace_number(function, &cause));
	about = place ? __atomic_load_n(place, __ATOMIC_RELAXED) : NULL;
	return about ? about != &refused : decide_arguments(place, function);
}

/* Called in a fork child, where functions get new numbers. */
void trace_values_restart(void)
{
	if (arguments_of)
		shim_memory_discard(arguments_of,
				    FUNCTIONS * sizeof(*arguments_of));
	if (results_of)
		shim_memory_discard(results_of,
				    FUNCTIONS * sizeof(*results_of));
}

/* --- raw values --- */

static void begin_record(struct trace_record *raw, enum shim_trace_kind kind,
			 const struct trace_values *about)
{
	raw->kind = kind;
	raw->bytes[0] = (unsigned char)about->number;
	raw->bytes[1] = (unsigned char)(about->number >> 8);
	raw->size = 2;
	raw->place = NULL;
}

/* Whether @size bytes fit, and a byte that marks the cut. */
static inline bool has_room(struct trace_record *raw, uint32_t size)
{
	if (LIKELY(raw->size + size < TRACE_VALUES_SIZE))
		return true;
	raw->bytes[raw->size++] = SHIM_VALUE_CUT;
	return false;
}

static inline bool put_bytes(struct trace_record *raw, const void *value,
			     uint32_t size)
{
	unsigned char *at = raw->bytes + raw->size;

	if (!has_room(raw, 1 + size))
		return false;
	*at++ = SHIM_VALUE_RAW;
	if (size == 4)
		__builtin_memcpy(at, value, 4);
	else if (size == 8)
		__builtin_memcpy(at, value, 8);
	else
		for (uint32_t i = 0; i < size; i++)
			at[i] = ((const unsigned char *)value)[i];
	raw->size += 1 + size;
	return true;
}

/* Adds the whole text to the record. */
static bool put_text(struct trace_record *raw, const struct text *text)
{
	if (!has_room(raw, 2 + text->size))
		return false;
	raw->bytes[raw->size++] = SHIM_VALUE_TEXT;
	raw->bytes[raw->size++] = (unsigned char)text->size;
	for (uint32_t i = 0; i < text->size; i++)
		raw->bytes[raw->size++] = (unsigned char)text->memory[i];
	return true;
}

static __attribute__((noinline)) bool
put_as_text(struct trace_record *raw, shim_type type, const void *value)
{
	struct text text;

	clear_text(&text);
	/* The text is cut between two characters. */
	if (raw->size + 2 + TEXT_LEAST < TRACE_VALUES_SIZE)
		text.room = TRACE_VALUES_SIZE - 3 - raw->size;
	add_value(&text, type, value);
	return put_text(raw, &text);
}

static COLD bool put_missing(struct trace_record *raw, shim_elt_info info,
			     uint32_t position)
{
	enum shim_unavailable reason;
	enum shim_result r = shim_get_value_reason(info, position, &reason);
	struct text text;

	if (r != SHIM_OK) {
		clear_text(&text);
		add_reason(&text, shim_result_text(r));
		return put_text(raw, &text);
	}
	if (!has_room(raw, 1))
		return false;
	raw->bytes[raw->size++] = (unsigned char)(SHIM_VALUE_MISSING | reason);
	return true;
}

/* Whether the pointer's target may have a name. */
static bool leads_into_image(const void *pointer)
{
	const void *address = *(const void *const *)pointer;
	shim_image image;

	return address && shim_image_from_address(address, &image) == SHIM_OK;
}

/* False if no further value fits. */
static inline bool put_value(struct trace_record *raw,
			     const struct trace_values *about, uint32_t i,
			     const void *value)
{
	if (about->value[i].way == TRACE_TEXT ||
	    (about->value[i].way == TRACE_POINTER && leads_into_image(value)))
		return put_as_text(raw, about->value[i].type, value);
	return put_bytes(raw, value, about->value[i].size);
}

/* --- the records --- */

struct arguments {
	struct shim_argument_info info;
	struct shim_argument_range more[2 * SHIM_VALUES_MAX];
};

static const struct trace_values *describe(struct trace_values *draft,
					   shim_function function,
					   uint32_t kind, uint32_t number,
					   const struct trace_values **all)
{
	const struct trace_values **place = place_of(all, number);
	const struct trace_values *about =
		place ? __atomic_load_n(place, __ATOMIC_ACQUIRE) : NULL;

	if (LIKELY(about && about != &trace_undescribed))
		return about;
	return trace_describe(draft, function, kind, number, place);
}

/* Adds the arguments as text, if their description could not be written. */
static COLD void add_arguments(struct text *text,
			       const struct trace_values *about,
			       const struct shim_argument_info *info,
			       shim_elt_info elt_info)
{
	char name[NAME_SIZE];

	for (uint32_t i = 0; i < info->ranges_count; i++) {
		uintptr_t start = info->ranges[i].start;

		add_text(text, i ? ", " : "");
		if (i >= about->count) {
			add_text(text, "...");
			return;
		}
		name[0] = '\0';
		shim_get_parameter_info(about->function, i, NULL, NAME_SIZE,
					NULL, name);
		add_text(text, name);
		add_text(text, name[0] ? " = " : "");
		if (start)
			add_value(text, about->value[i].type,
				  (const void *)start);
		else
			add_missing(text, elt_info, i);
	}
}

static COLD void write_reason(enum shim_trace_kind kind, const char *reason)
{
	struct text text;

	clear_text(&text);
	add_reason(&text, reason);
	trace_text(kind, text.memory, text.size);
}

static void put_arguments(struct trace_record *raw,
			  const struct trace_values *about,
			  const struct shim_argument_info *info,
			  shim_elt_info elt_info)
{
	bool goes_on = true;

	begin_record(raw, SHIM_TRACE_ARGUMENTS_RAW, about);
	for (uint32_t i = 0; i < about->count && goes_on; i++) {
		uintptr_t start = i < info->ranges_count ?
					  info->ranges[i].start :
					  0;

		goes_on = LIKELY(start) ? put_value(raw, about, i,
						    (const void *)start) :
					  put_missing(raw, elt_info, i);
	}
}

/* (Not inlined, because most calls do not need its frame.) */
static __attribute__((noinline)) enum trace_answer
read_arguments(const struct trace_values *about, shim_elt_info info,
	       struct trace_record *record)
{
	struct arguments arguments;
	uint32_t size = sizeof(arguments);

	if (UNLIKELY(shim_get_function_enter3_info(about->function, info, NULL,
						   &size,
						   &arguments.info) != SHIM_OK))
		return TRACE_AS_TEXT;
	put_arguments(record, about, &arguments.info, info);
	return TRACE_AS_BYTES;
}

enum trace_answer trace_ask(shim_function function, shim_elt_info info,
			    struct trace_record *record)
{
	const struct trace_values **place, *about;
	enum shim_lost cause;

	place = place_of(arguments_of, trace_number(function, &cause));
	about = place ? __atomic_load_n(place, __ATOMIC_ACQUIRE) : NULL;
	if (about == &refused || (!about && !decide_arguments(place, function)))
		return TRACE_NOT_ASKED;
	if (__atomic_load_n(&trace_is_off, __ATOMIC_RELAXED))
		return TRACE_NOTHING;
	if (!about || !about->number || !info)
		return TRACE_AS_TEXT;
	return about->count ? read_arguments(about, info, record) :
			      TRACE_NOTHING;
}

static COLD void put_arguments_as_text(const struct trace_values *about,
				       const struct shim_argument_info *info,
				       shim_elt_info elt_info)
{
	struct text text;

	clear_text(&text);
	add_arguments(&text, about, info, elt_info);
	trace_text(SHIM_TRACE_ARGUMENTS, text.memory, text.size);
}

static COLD void put_raw_arguments(const struct trace_values *about,
				   const struct shim_argument_info *info,
				   shim_elt_info elt_info)
{
	struct trace_record record;

	put_arguments(&record, about, info, elt_info);
	trace_put_values(&record);
}

static COLD void say_arguments(const struct trace_values *about,
			       shim_elt_info info)
{
	struct arguments arguments;
	uint32_t size = sizeof(arguments);
	enum shim_result r;

	r = shim_get_function_enter3_info(about->function, info, NULL, &size,
					  &arguments.info);
	if (r == SHIM_OK)
		r = about->result;
	if (r != SHIM_OK)
		write_reason(SHIM_TRACE_ARGUMENTS, shim_result_text(r));
	else if (about->number && about->count)
		put_raw_arguments(about, &arguments.info, info);
	else if (about->count)
		put_arguments_as_text(about, &arguments.info, info);
}

/* Writes the arguments of the first call of a function, and arguments that are
 * unavailable or not described. */
COLD void trace_say_arguments(shim_function function, shim_elt_info info)
{
	struct trace_values draft;
	enum shim_lost cause;

	if (info)
		say_arguments(
			describe(&draft, function, SHIM_VALUES_KIND_ARGUMENTS,
				 trace_number(function, &cause), arguments_of),
			info);
	else
		write_reason(SHIM_TRACE_ARGUMENTS, "in a signal handler");
}

static COLD void put_result_as_text(const struct trace_values *about,
				    const struct shim_argument_range *range,
				    shim_elt_info info)
{
	struct text text;

	clear_text(&text);
	if (range->start)
		add_value(&text, about->value[0].type,
			  (const void *)range->start);
	else
		add_missing(&text, info, SHIM_RESULT);
	trace_text(SHIM_TRACE_RESULT, text.memory, text.size);
}

static void put_raw_result(const struct trace_values *about,
			   const struct shim_argument_range *range,
			   shim_elt_info info)
{
	struct trace_record raw;

	begin_record(&raw, SHIM_TRACE_RESULT_RAW, about);
	if (LIKELY(range->start))
		put_value(&raw, about, 0, (const void *)range->start);
	else
		put_missing(&raw, info, SHIM_RESULT);
	trace_put_values(&raw);
}

/* The call in the trace that this leave ends, or NULL. */
static const struct shim_node *find_recorded(shim_function function)
{
	const struct tree *tree = tree_hot.tree;
	const struct shim_node *node = tree_hot.current;

	if (!tree || tree_hot.shared)
		return NULL;
	if (node == &tree_no_call)
		node = tree->current;
	return address_of(node) == function &&
			       (!(node->frame & FRAME_LEFT_OUT) ||
				trace_has_waited(node, now())) ?
		       node :
		       NULL;
}

static void put_result(union shim_function_or_client function,
		       shim_elt_info info)
{
	const struct shim_node *node = find_recorded(function.function);
	struct shim_argument_range range = { 0, 0 };
	const struct trace_values *about;
	struct trace_values draft;
	shim_frame_info frame;
	enum shim_result r;

	if (!node)
		return;
	about = describe(&draft, function.function, SHIM_VALUES_KIND_RESULT,
			 node_number(node), results_of);
	r = about->result;
	if (r == SHIM_OK && about->count == 0)
		return;
	if (r == SHIM_OK)
		r = shim_get_function_leave3_info(function.function, info,
						  &frame, &range);
	if (r != SHIM_OK)
		write_reason(SHIM_TRACE_RESULT, shim_result_text(r));
	else if (LIKELY(about->number))
		put_raw_result(about, &range, info);
	else
		put_result_as_text(about, &range, info);
}

/* Runs once for each function. */
static uintptr_t choose_function(shim_function function, void *unused,
				 int *hook)
{
	(void)unused;
	*hook = trace_names(function, TRACE_RESULTS);
	return function;
}

/* --- start --- */

void trace_values_prepare(bool arguments, bool results)
{
	if (arguments)
		arguments_of = shim_memory_map(FUNCTIONS *
					       sizeof(*arguments_of));
	if (results)
		results_of = shim_memory_map(FUNCTIONS * sizeof(*results_of));
	trace_asks_arguments = arguments && arguments_of;
	asks_results = results;
}

bool trace_values_start(void)
{
	struct shim_profiler_handle *handle;

	if (!asks_results)
		return true;
	handle = shim_profiler_create(NULL);
	return handle && shim_profiler_set_raw_leave_hooks(handle) == SHIM_OK &&
	       shim_profiler_set_event_mask(
		       handle,
		       SHIM_MONITOR_ENTERLEAVE | SHIM_ENABLE_FUNCTION_RETVAL) ==
		       SHIM_OK &&
	       shim_profiler_set_function_id_mapper2(handle, choose_function,
						     NULL) == SHIM_OK &&
	       shim_profiler_set_enter_leave_function_hooks3_with_info(
		       handle, NULL, put_result, NULL) == SHIM_OK;
}
