/*
 * Makes recipes.  A recipe says where each argument is at an enter hook: in a register,
 * on the stack, or as an expression over the caller's values.
 */
#include "inspect/recipe.h"

#include "inspect/code.h"
#include "inspect/debuginfo/debuginfo.h"
#include "inspect/info.h"
#include "inspect/known.h"
#include "inspect/moved_code.h"
#include "os/sys.h"
#include "runtime/state.h"

#include <errno.h>

#include <shim/banned.h>

static _Alignas(struct recipe) unsigned char draft[sizeof(struct recipe) +
						   PROTOTYPE_VALUES_MAX *
							   sizeof(struct part)];

static size_t size_of(const struct recipe *recipe)
{
	return sizeof(*recipe) + recipe->count * sizeof(recipe->parts[0]);
}

/* Why the argument is unavailable without the caller, or 0. */
static uint8_t reason_of(const struct recipe *recipe, const struct part *part)
{
	const struct decode_places *places = &part->places;
	uint32_t count = part->value.kind == PROTOTYPE_REFERENCE ||
					 places->in_memory ?
				 1 :
				 (part->value.size + 7) / 8;

	if (part->value.kind == PROTOTYPE_NOTHING && part->value.size > 0 &&
	    part->value.size <= REGISTER_MAX)
		return SHIM_AVAILABLE;
	if (count == 0 || (count > 2 && !places->in_memory))
		return SHIM_UNAVAILABLE_NOT_UNDERSTOOD;
	for (uint32_t i = 0; i < count; i++) {
		const struct decode_place *place = &places->eightbytes[i];

		if (part->has_passed && part->passed[i].count > 0)
			continue;
		if (place->where == DECODE_NOWHERE)
			return places->reason;
		if (place->is_unused)
			return SHIM_UNAVAILABLE_OPTIMIZED_OUT;
		if (place->where == DECODE_ON_STACK && !recipe->frame.is_known)
			return SHIM_UNAVAILABLE_CODE;
	}
	return SHIM_AVAILABLE;
}

/* The caller's debug information may describe arguments that the function does not
 * use. */
static void set_reasons(struct recipe *recipe)
{
	for (uint32_t i = 0; i < recipe->count; i++) {
		struct part *part = &recipe->parts[i];

		part->places.reason = reason_of(recipe, part);
		recipe->asks_caller |= part->places.reason ==
				       SHIM_UNAVAILABLE_OPTIMIZED_OUT;
	}
}

/* Rejects wrong sizes and classes, which damaged debug information may have.  The first
 * query detects memory that cannot be read. */
static void reject_damaged(const struct recipe_job *job, struct recipe *recipe)
{
	for (uint32_t i = 0; i < recipe->count; i++) {
		struct part *part = &recipe->parts[i];
		uintptr_t address = recipe_find_memory(job->frame, recipe,
						       part);
		unsigned char byte;

		if (address == 0 || part->value.size == 0)
			continue;
		if (sys_peek((const void *)address, &byte, 1) == -EFAULT ||
		    sys_peek((const void *)(address + part->value.size - 1),
			     &byte, 1) == -EFAULT)
			part->places.reason = SHIM_UNAVAILABLE_NOT_UNDERSTOOD;
	}
}

/* Where the code of the function begins behind its mark. */
static struct moved_code code_behind_mark(const struct arch_frame *frame)
{
	struct moved_code moved = { .function = frame->function,
				    .code = frame->return_address };

	NOTIFY(moved_code_wanted, &moved);
	return moved;
}

static void locate_parameters(const struct recipe_job *job,
			      struct recipe *recipe)
{
	static struct decode_places places[PROTOTYPE_VALUES_MAX];
	const struct values_space *space = job->space;
	struct decode_location location = {
		.function = recipe->cached.function,
		.end = info_code_end(recipe->cached.function),
		.hook = recipe->cached.address,
		.values = space->values,
		.count = space->value_count,
	};

	if (arch_frame_entry(job->frame)) {
		const struct moved_code moved = code_behind_mark(job->frame);

		location.is_late = moved.is_late;
		location.entry = moved.is_late ? location.function : moved.code;
		location.is_complete = known_has(recipe->cached.function);
	}
	__builtin_memset(places, 0, sizeof(places));
	for (uint32_t i = 0; i < PROTOTYPE_VALUES_MAX; i++)
		places[i].reason = SHIM_UNAVAILABLE_CODE;
	/* The decoder may be opened later, so the next query tries again. */
	if (!code_find_arguments(&location, &recipe->frame, places))
		recipe->cached.age = 0;
	for (uint32_t i = 0; i < recipe->count; i++)
		recipe->parts[i].places = places[i + 1];
	set_reasons(recipe);
	reject_damaged(job, recipe);
}

static void make_recipe(const struct recipe_job *job, struct recipe *recipe)
{
	const struct values_space *space = job->space;

	ASSERT_LOCKED();
	__builtin_memset(draft, 0, sizeof(draft));
	recipe->cached.address = job->frame->return_address;
	recipe->cached.function = job->frame->function;
	recipe->cached.age = job->age;
	if (space->value_count == 0) {
		recipe->result = SHIM_E_FUNCTION_NOT_IL;
		return;
	}
	recipe->result = SHIM_OK;
	recipe->count = space->value_count - 1;
	recipe->may_tail_call = space->values[0].may_tail_call;
	for (uint32_t i = 0; i < recipe->count; i++) {
		const struct prototype_value *value = &space->values[i + 1];

		recipe->parts[i].value = *value;
		if (value->is_hidden)
			continue;
		recipe->declared_count++;
		recipe->total_size += value->size;
	}
	locate_parameters(job, recipe);
}

/* --- the arguments that the caller passed --- */

/* Whether the hook can read all operands of the expression. */
static bool can_read_operands(const struct recipe *recipe,
			      const struct callsite_value *value)
{
	for (uint32_t i = 0; i < value->count; i++) {
		const struct callsite_step *step = &value->steps[i];
		int kept = recipe_kept_index(step->number);

		if (step->operation == CALLSITE_REGISTER &&
		    (kept < 0 ||
		     recipe->frame.kept[kept].where == DECODE_NOWHERE))
			return false;
		if (step->operation == CALLSITE_SP && !recipe->frame.is_known)
			return false;
		if (step->operation == CALLSITE_LOAD &&
		    recipe->frame.is_overwritten)
			return false;
	}
	return true;
}

static bool is_source(const struct decode_way *way, unsigned entry,
		      unsigned number)
{
	return (way->sources[entry] & 1u << number) &&
	       way->written[number] > way->written[entry];
}

/* Whether the operands of the expression have not changed since the argument's register
 * was written from them.  In clang's expressions, a sum with memory stands for the
 * value loaded from that address. */
static bool is_unchanged(const struct decode_way *way,
			 const struct callsite_value *value)
{
	unsigned entry = value->entry - 1u;

	for (uint32_t i = 0; i < value->count; i++) {
		const struct callsite_step *step = &value->steps[i];

		if ((step->operation == CALLSITE_REGISTER &&
		     !is_source(way, entry, step->number)) ||
		    (step->operation == CALLSITE_SP &&
		     !is_source(way, entry, DECODE_SP)) ||
		    step->operation == CALLSITE_LOAD)
			return false;
	}
	return true;
}

/* Drops clang's expressions whose operands may have changed. */
static void drop_changed(struct callsite *callsite, uintptr_t site)
{
	static struct decode_way way;
	uint32_t kept = 0;

	if (!callsite->is_loose || callsite->count == 0)
		return;
	way.caller = callsite->caller;
	way.site = site;
	if (code_way(&way))
		for (uint32_t i = 0; i < callsite->count; i++)
			if (is_unchanged(&way, &callsite->values[i]))
				callsite->values[kept++] = callsite->values[i];
	callsite->count = kept;
}

/* The caller's code has precedence over its debug information, because only the code is
 * certain. */
static void add_passed(struct callsite *callsite, uintptr_t site, uint32_t age)
{
	static struct decode_range ranges[DEBUGINFO_RANGES];
	static struct decode_passed passed;

	passed.site = site;
	passed.age = age;
	passed.ranges = ranges;
	passed.range_count = info_code_ranges(callsite->caller,
					      DEBUGINFO_RANGES, ranges);
	/* The caller may have more ranges than these. */
	if (passed.range_count == DEBUGINFO_RANGES || !code_passed(&passed))
		return;
	for (uint32_t i = 0;
	     i < callsite->count && passed.count < CALLSITE_VALUES_MAX; i++)
		passed.values[passed.count++] = callsite->values[i];
	__builtin_memcpy(callsite->values, passed.values,
			 sizeof(passed.values));
	callsite->count = passed.count;
}

/* Finds the caller's expression for the @size bytes that came in register @entry. */
static bool has_passed(const struct recipe *recipe,
		       const struct callsite *callsite, unsigned entry,
		       uint32_t size, struct callsite_value *passed)
{
	for (uint32_t i = 0; i < callsite->count; i++) {
		const struct callsite_value *value = &callsite->values[i];

		if (entry == 0 || value->entry != entry || value->size < size ||
		    !can_read_operands(recipe, value))
			continue;
		*passed = *value;
		return true;
	}
	return false;
}

/* gcc passes all arguments, unless it knows all callers, but may leave parts of an object
 * unset. */
static bool is_passed(const struct part *part)
{
	return !part->value.is_optional &&
	       part->value.kind != PROTOTYPE_REFERENCE &&
	       !(part->value.is_local &&
		 part->places.eightbytes[0].where == DECODE_AT_ENTRY);
}

static uint32_t eightbyte_size(const struct part *part, int i)
{
	uint32_t left = part->value.size - (uint32_t)i * 8;

	return part->value.kind == PROTOTYPE_REFERENCE || left > 8 ? 8 : left;
}

/* Returns whether the argument is available now. */
static bool set_passed(const struct recipe *recipe,
		       const struct callsite *callsite, struct part *part)
{
	for (int i = 0; i < 2; i++) {
		struct decode_place *place = &part->places.eightbytes[i];
		bool is_upper = part->value.is_whole && i == 1;

		if (place->where != DECODE_NOWHERE)
			place->is_unused = false;
		else if (has_passed(recipe, callsite,
				    place->entry + is_upper * CALLSITE_UPPER,
				    eightbyte_size(part, i), &part->passed[i]))
			part->has_passed = true;
	}
	part->places.reason = reason_of(recipe, part);
	return part->places.reason == SHIM_AVAILABLE;
}

/*
 * The caller's values are valid only if the site certainly calls this function.  The
 * instruction before the return address must call it, and the function must not make
 * tail calls: their callees might jump back with other arguments and the same return
 * address.
 *
 * Callers compiled together with the function may omit arguments, and parts of objects,
 * that it does not use.  Then debug information describes a register with another
 * value.
 */
static void make_site_recipe(const struct recipe_job *job,
			     struct recipe *recipe)
{
	const struct recipe *primary = job->primary;
	struct callsite *callsite = &job->space->callsite;
	struct decode_call call = {
		.function = primary->cached.function,
		.end = info_code_end(primary->cached.function),
		.site = (uintptr_t)job->frame->site,
		.entry = arch_frame_entry(job->frame) ?
				 code_behind_mark(job->frame).code :
				 0,
		.may_tail_call = primary->may_tail_call,
	};
	bool is_better = false;

	__builtin_memcpy(draft, primary,
			 sizeof(*primary) +
				 primary->count * sizeof(primary->parts[0]));
	recipe->cached.age = job->age;
	recipe->cached.site = (uintptr_t)job->frame->site;
	if (code_calls(&call)) {
		recipe->guard = call.number;
		drop_changed(callsite, call.site);
		add_passed(callsite, call.site, job->age);
		for (uint32_t i = 0; i < recipe->count; i++)
			if (recipe->parts[i].places.reason ==
				    SHIM_UNAVAILABLE_OPTIMIZED_OUT &&
			    (callsite->is_complete ||
			     is_passed(&recipe->parts[i])))
				is_better |= set_passed(recipe, callsite,
							&recipe->parts[i]);
	}
	if (is_better)
		return;
	recipe->same = primary;
	recipe->guard = 0;
	recipe->count = 0;
}

const struct recipe *recipe_make(const struct recipe_job *job)
{
	struct recipe *recipe = (struct recipe *)draft;

	ASSERT_LOCKED();
	if (job->primary)
		make_site_recipe(job, recipe);
	else
		make_recipe(job, recipe);
	recipe->cached.size = (uint32_t)size_of(recipe);
	return recipe;
}

/* --- debug information for a recipe --- */

static void keep_prototype(const struct debuginfo_answer *answer,
			   void *argument)
{
	struct values_space *space = argument;
	const struct prototype_value *result = answer->data;

	if (result->is_alone)
		return;
	space->value_count = (uint32_t)answer->count;
	__builtin_memcpy(space->values, answer->data,
			 answer->count * sizeof(space->values[0]));
}

static void keep_callsite(const struct debuginfo_answer *answer, void *argument)
{
	struct values_space *space = argument;

	__builtin_memcpy(&space->callsite, answer->data,
			 sizeof(space->callsite));
}

enum shim_result recipe_query(const struct recipe_job *job,
			      struct values_space *space)
{
	if (!job->primary) {
		space->value_count = 0;
		return info_ask_prototype(job->frame->function,
					  job->frame->return_address,
					  keep_prototype, space);
	}
	space->callsite = (struct callsite){ .is_complete = true };
	/* The caller's code shows the arguments that it passes.  A hook should not wait
	 * until libc's debug information is open. */
	if (info_is_called_from_outside((uintptr_t)job->frame->site,
					job->frame->function,
					&space->callsite.caller))
		return SHIM_OK;
	space->callsite.is_complete = false;
	return info_ask_callsite(HELPER_CALLSITE, (uintptr_t)job->frame->site,
				 job->frame->function, keep_callsite, space);
}
