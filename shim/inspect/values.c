/*
 * Arguments at enter hooks.  At the first query at a call site, shim finds the location
 * of each parameter and stores it in a recipe, which later queries use.
 */
#include "inspect/values.h"

#include "inspect/callsite.h"
#include "inspect/code.h"
#include "inspect/code_cache.h"
#include "inspect/debuginfo/debuginfo.h"
#include "inspect/info.h"
#include "inspect/prototype.h"
#include "os/sys.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <errno.h>
#include <shim/record.h>
#include <shim/values.h>

#include <shim/banned.h>

#define REGISTER_MAX 16 /* bytes of an argument in registers */

/* Site recipes take some hundred bytes each. */
#define SITES_MAX (1u << 15)

struct part {
	struct prototype_value value;
	struct decode_places places;
	/* The caller's expressions for its eightbytes, if count is not 0. */
	struct callsite_value passed[2];
	bool has_passed;
};

struct recipe {
	struct code_cache_entry cached;
	enum shim_result result;
	/* The recipe to use for a site whose caller adds no values; otherwise NULL. */
	const struct recipe *same;
	bool asks_caller; /* each site has a recipe of its own */
	bool may_tail_call;
	uint8_t guard;	/* the register with the callee's address, or 0 */
	uint32_t count; /* of parts, one for each parameter */
	uint32_t declared_count, total_size;
	struct decode_frame frame;
	struct part parts[];
};

/* Memory of a thread, from its first query on.  The program's stack may be too
 * small. */
struct values_space {
	unsigned char spilled[PROTOTYPE_VALUES_MAX][REGISTER_MAX];
	struct prototype_value values[PROTOTYPE_VALUES_MAX];
	uint32_t value_count; /* 0: no debug information */
	struct callsite callsite;
	/* The answer of values_answer(). */
	union {
		struct shim_argument_info info;
		unsigned char bytes[sizeof(struct shim_argument_info) +
				    PROTOTYPE_VALUES_MAX *
					    sizeof(struct shim_argument_range)];
	} passed;
};

static struct code_cache recipes, site_recipes, near_table;

static inline const struct recipe *find_recipe(const struct code_cache *in,
					       uintptr_t address,
					       uintptr_t function,
					       uintptr_t site)
{
	return (const void *)code_cache_find(in, address, function, site);
}

/* --- making a recipe --- */

struct job {
	const struct arch_frame *frame;
	struct values_space *space;
	const struct recipe *primary; /* NULL: this is the primary */
	uint32_t age;		      /* the age before the query */
	const struct recipe *made;
};

static _Alignas(struct recipe) unsigned char draft[sizeof(struct recipe) +
						   PROTOTYPE_VALUES_MAX *
							   sizeof(struct part)];

static size_t size_of(const struct recipe *recipe)
{
	return sizeof(*recipe) + recipe->count * sizeof(recipe->parts[0]);
}

/* The argument's address if it is in the program's memory, or 0.  The address of an
 * object may be in a register. */
static uintptr_t find_memory(const struct arch_frame *frame,
			     const struct recipe *recipe,
			     const struct part *part);

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

/* The simple form uses only locations at a fixed distance from the hook's frame. */
static bool find_near(const struct arch_frame *frame,
		      const struct recipe *recipe, const struct part *part,
		      uintptr_t *address)
{
	const struct decode_place *place = &part->places.eightbytes[0];

	if (part->places.reason != SHIM_AVAILABLE || part->has_passed ||
	    part->value.is_hidden || part->value.kind == PROTOTYPE_NOTHING ||
	    part->value.kind == PROTOTYPE_REFERENCE ||
	    (part->value.size > 8 && !part->places.in_memory))
		return false;
	switch (place->where) {
	case DECODE_IN_REGISTER:
		*address = (uintptr_t)arch_frame_at(frame, place->number,
						    false);
		return *address != 0;
	case DECODE_IN_VECTOR:
		*address = (uintptr_t)arch_frame_at(frame, place->number,
						    true) +
			   (uintptr_t)place->offset;
		return *address != (uintptr_t)place->offset;
	case DECODE_ON_STACK:
		*address = ARCH_FRAME_CFA(frame) +
			   (uintptr_t)recipe->frame.offset +
			   (uintptr_t)place->offset;
		return recipe->frame.number == DECODE_SP;
	case DECODE_ABOVE_SP:
		*address = ARCH_FRAME_CFA(frame) + (uintptr_t)place->offset;
		return true;
	default: return false;
	}
}

static bool make_near(const struct arch_frame *frame,
		      const struct recipe *recipe, struct values_near *near)
{
	uintptr_t address;

	near->cached = recipe->cached;
	near->has_registers = 1;
	near->head.count = recipe->count;
	near->head.total_size = recipe->total_size;
	for (uint32_t i = 0; i < recipe->count; i++) {
		if (!find_near(frame, recipe, &recipe->parts[i], &address))
			return false;
		near->parts[i].distance = (int32_t)(address - (uintptr_t)frame);
		/* arch_arguments, which are below the frame, exist only with registers. */
		if (address < (uintptr_t)frame)
			near->has_registers = ARCH_FRAME_ALL;
		near->parts[i].length = recipe->parts[i].value.size;
	}
	near->cached.size = (uint32_t)(sizeof(*near) +
				       (recipe->count ? recipe->count : 1) *
					       sizeof(near->parts[0]));
	near->size = (uint32_t)(sizeof(struct shim_argument_info) +
				recipe->count *
					sizeof(struct shim_argument_range));
	return true;
}

/* State lock held. */
static void keep_near(const struct arch_frame *frame,
		      const struct recipe *recipe)
{
	static union {
		struct values_near near;
		unsigned char room[sizeof(struct values_near) +
				   PROTOTYPE_VALUES_MAX * 8];
	} near_draft;
	const struct code_cache_entry *kept;

	ASSERT_LOCKED();
	__builtin_memset(&near_draft, 0, sizeof(near_draft));
	if (recipe->result != SHIM_OK || recipe->asks_caller ||
	    !frame->has_registers || recipe->cached.age == 0 ||
	    !make_near(frame, recipe, &near_draft.near))
		return;
	kept = code_cache_keep(&near_table, &near_draft.near.cached);
	if (kept && near_draft.near.has_registers == 1)
		code_cache_put_in_front(KNOWN_ENTERS, kept);
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
static void reject_damaged(const struct job *job, struct recipe *recipe)
{
	for (uint32_t i = 0; i < recipe->count; i++) {
		struct part *part = &recipe->parts[i];
		uintptr_t address = find_memory(job->frame, recipe, part);
		unsigned char byte;

		if (address == 0 || part->value.size == 0)
			continue;
		if (sys_peek((const void *)address, &byte, 1) == -EFAULT ||
		    sys_peek((const void *)(address + part->value.size - 1),
			     &byte, 1) == -EFAULT)
			part->places.reason = SHIM_UNAVAILABLE_NOT_UNDERSTOOD;
	}
}

static void locate_parameters(const struct job *job, struct recipe *recipe)
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

static void make_recipe(const struct job *job, struct recipe *recipe)
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

static int kept_index(unsigned number)
{
	static const uint8_t kept[] = { 3, 5, 12, 13, 14, 15 };

	for (int i = 0; i < 6; i++)
		if (kept[i] == number)
			return i;
	return -1;
}

/* Whether the hook can read all operands of the expression. */
static bool can_read_operands(const struct recipe *recipe,
			      const struct callsite_value *value)
{
	for (uint32_t i = 0; i < value->count; i++) {
		const struct callsite_step *step = &value->steps[i];
		int kept = kept_index(step->number);

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

/* gcc passes all arguments, but may leave parts of an object unset. */
static bool is_passed(const struct part *part)
{
	return !part->value.is_optional &&
	       part->value.kind != PROTOTYPE_REFERENCE;
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
static void make_site_recipe(const struct job *job, struct recipe *recipe)
{
	const struct recipe *primary = job->primary;
	struct callsite *callsite = &job->space->callsite;
	struct decode_call call = {
		.function = primary->cached.function,
		.end = info_code_end(primary->cached.function),
		.site = (uintptr_t)job->frame->site,
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

/* State lock held. */
static int store_recipe(void *argument)
{
	struct job *job = argument;
	struct recipe *recipe = (struct recipe *)draft;

	ASSERT_LOCKED();
	if (job->primary)
		make_site_recipe(job, recipe);
	else
		make_recipe(job, recipe);
	recipe->cached.size = (uint32_t)size_of(recipe);
	job->made = (const void *)code_cache_keep(
		job->primary ? &site_recipes : &recipes, &recipe->cached);
	if (job->made && !job->primary)
		keep_near(job->frame, job->made);
	return job->made ? 0 : -1;
}

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

static enum shim_result query_recipe(const struct job *job,
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

static enum shim_result find_new(struct thread *self,
				 const struct arch_frame *frame,
				 const struct recipe *primary,
				 const struct recipe **recipe)
{
	struct job job = {
		.frame = frame,
		.primary = primary,
		.age = code_cache_age(),
	};
	enum shim_result r;

	if (!self->values)
		self->values = shim_memory_map(sizeof(*self->values));
	if (!self->values)
		return SHIM_E_UNEXPECTED;
	job.space = self->values;
	r = query_recipe(&job, self->values);
	if (r == SHIM_E_NOT_YET_AVAILABLE)
		return r;
	if (r == SHIM_E_OUTOFMEMORY || state_slowly(store_recipe, &job) < 0 ||
	    !job.made)
		return SHIM_E_UNEXPECTED;
	*recipe = job.made;
	return job.made->result;
}

/* Whether the caller's register with the callee's address, which the function has
 * saved, confirms the call. */
static bool is_called_by(const struct arch_frame *frame,
			 const struct recipe *recipe);

/* Uses the primary recipe if the site has none. */
static const struct recipe *find_site(struct thread *self,
				      const struct arch_frame *frame,
				      const struct recipe *primary)
{
	uintptr_t site = (uintptr_t)frame->site;
	const struct recipe *recipe = find_recipe(
		&site_recipes, primary->cached.address,
		primary->cached.function, site);

	if (!recipe &&
	    (site == 0 || code_cache_count(&site_recipes) >= SITES_MAX ||
	     find_new(self, frame, primary, &recipe) != SHIM_OK))
		return primary;
	if (recipe->same)
		return primary;
	return is_called_by(frame, recipe) ? recipe : primary;
}

enum shim_result values_find(struct thread *self,
			     const struct arch_frame *frame,
			     const struct recipe **recipe)
{
	enum shim_result r;

	*recipe = find_recipe(&recipes, frame->return_address, frame->function,
			      0);
	if (!*recipe || !self->values) {
		r = find_new(self, frame, NULL, recipe);
		if (r != SHIM_OK)
			return r;
	}
	if ((*recipe)->asks_caller)
		*recipe = find_site(self, frame, *recipe);
	return (*recipe)->result;
}

const struct values_near *values_find_near(const struct arch_frame *frame)
{
	const struct values_near *near = (const void *)code_cache_find(
		&near_table, frame->return_address, frame->function, 0);

	return near && ARCH_FRAME_REGISTERS(frame) >= near->has_registers ?
		       near :
		       NULL;
}

uint32_t values_count(const struct recipe *recipe)
{
	return recipe->declared_count;
}

bool values_has_this(const struct recipe *recipe)
{
	for (uint32_t i = 0; i < recipe->count; i++)
		if (!recipe->parts[i].value.is_hidden)
			return recipe->parts[i].value.is_this;
	return false;
}

/* --- using a recipe --- */

struct reader {
	const struct arch_frame *frame;
	const struct recipe *recipe;
	uintptr_t base; /* the stack pointer at the entry */
	bool has_base;
};

static bool read_register(const struct arch_frame *frame, unsigned number,
			  uintptr_t *value)
{
	if (number == DECODE_SP) {
		*value = ARCH_FRAME_CFA(frame);
		return true;
	}
	return arch_frame_register(frame, number, value);
}

static bool read_place(const struct reader *reader,
		       const struct decode_place *place, uintptr_t *value)
{
	const unsigned char *vector;

	switch (place->where) {
	case DECODE_IN_REGISTER:
		return read_register(reader->frame, place->number, value);
	case DECODE_IN_VECTOR:
		vector = arch_frame_at(reader->frame, place->number, true);
		if (!vector)
			return false;
		__builtin_memcpy(value, vector + place->offset, 8);
		return true;
	case DECODE_ON_STACK:
		if (!reader->has_base)
			return false;
		*value = *(const uintptr_t *)(reader->base +
					      (uintptr_t)place->offset);
		return true;
	case DECODE_ABOVE_SP:
		*value = *(const uintptr_t *)(ARCH_FRAME_CFA(reader->frame) +
					      (uintptr_t)place->offset);
		return true;
	default: return false;
	}
}

static void begin_reader(struct reader *reader, const struct arch_frame *frame,
			 const struct recipe *recipe)
{
	reader->frame = frame;
	reader->recipe = recipe;
	reader->has_base = recipe->frame.is_known &&
			   read_register(frame, recipe->frame.number,
					 &reader->base);
	reader->base += (uintptr_t)recipe->frame.offset;
}

static bool is_called_by(const struct arch_frame *frame,
			 const struct recipe *recipe)
{
	struct reader reader = { .frame = frame };
	uintptr_t value;

	if (recipe->guard == 0)
		return true;
	begin_reader(&reader, frame, recipe);
	return read_place(&reader,
			  &recipe->frame.kept[kept_index(recipe->guard)],
			  &value) &&
	       value == recipe->cached.function;
}

/* --- the caller's expressions --- */

static uintptr_t combine(const struct callsite_step *step, uintptr_t a,
			 uintptr_t b)
{
	switch (step->operation) {
	case CALLSITE_PLUS: return a + b;
	case CALLSITE_MINUS: return a - b;
	case CALLSITE_MULTIPLY: return a * b;
	case CALLSITE_AND: return a & b;
	case CALLSITE_OR: return a | b;
	case CALLSITE_XOR: return a ^ b;
	case CALLSITE_SHIFT_LEFT: return b < 64 ? a << b : 0;
	case CALLSITE_SHIFT_RIGHT: return b < 64 ? a >> b : 0;
	default: /* CALLSITE_SHIFT_SIGNED */
		return (uintptr_t)((intptr_t)a >> (b < 64 ? b : 63));
	}
}

/* libshim-debuginfo.so has checked that the address is in the frame. */
static uintptr_t load_number(uintptr_t address, uint32_t size)
{
	uintptr_t value = 0;

	__builtin_memcpy(&value, (const void *)address, size);
	return value;
}

/* Stores the number that @step pushes in *@value; false if it is unavailable. */
static bool read_operand(const struct reader *reader,
			 const struct callsite_step *step, uintptr_t *value)
{
	const struct decode_place *kept = reader->recipe->frame.kept;

	*value = 0;
	if (step->operation == CALLSITE_SP)
		*value = reader->base + 8;
	if (step->operation == CALLSITE_REGISTER &&
	    !read_place(reader, &kept[kept_index(step->number)], value))
		return false;
	*value += (uintptr_t)step->value;
	return true;
}

static bool evaluate(const struct reader *reader,
		     const struct callsite_value *passed, uintptr_t *value)
{
	uintptr_t stack[CALLSITE_DEPTH_MAX + 1];
	uint32_t depth = 0;

	for (uint32_t i = 0; i < passed->count; i++) {
		const struct callsite_step *step = &passed->steps[i];

		switch (step->operation) {
		case CALLSITE_CONSTANT:
		case CALLSITE_REGISTER:
		case CALLSITE_SP:
			if (depth == CALLSITE_DEPTH_MAX ||
			    !read_operand(reader, step, &stack[depth++]))
				return false;
			break;
		case CALLSITE_LOAD:
			stack[depth - 1] = load_number(stack[depth - 1],
						       step->number);
			break;
		case CALLSITE_NEGATE:
			stack[depth - 1] = -stack[depth - 1];
			break;
		case CALLSITE_NOT: stack[depth - 1] = ~stack[depth - 1]; break;
		default:
			depth--;
			stack[depth - 1] = combine(step, stack[depth - 1],
						   stack[depth]);
		}
	}
	*value = stack[0];
	return depth == 1;
}

static bool read_eightbyte(const struct reader *reader, const struct part *part,
			   uint32_t i, uintptr_t *value)
{
	const struct decode_place *place = &part->places.eightbytes[i];

	if (place->where == DECODE_NOWHERE && part->has_passed)
		return evaluate(reader, &part->passed[i], value);
	return read_place(reader, place, value);
}

/* The address of the value's bytes in one piece, or 0. */
static uintptr_t read_part(const struct reader *reader, const struct part *part,
			   unsigned char *spilled)
{
	const struct decode_place *places = part->places.eightbytes;
	uintptr_t value;

	if (part->places.reason != SHIM_AVAILABLE)
		return 0;
	if (part->value.kind == PROTOTYPE_NOTHING) {
		/* The part consists of padding only. */
		__builtin_memset(spilled, 0, REGISTER_MAX);
		return (uintptr_t)spilled;
	}
	if (part->value.kind == PROTOTYPE_REFERENCE)
		return read_eightbyte(reader, part, 0, &value) ? value : 0;
	if (part->places.in_memory && places[0].where == DECODE_ABOVE_SP)
		return ARCH_FRAME_CFA(reader->frame) +
		       (uintptr_t)places[0].offset;
	if (part->places.in_memory)
		return reader->has_base ?
			       reader->base + (uintptr_t)places[0].offset :
			       0;
	for (uint32_t i = 0; i * 8 < part->value.size; i++) {
		if (!read_eightbyte(reader, part, i, &value))
			return 0;
		__builtin_memcpy(spilled + i * 8, &value, 8);
	}
	return (uintptr_t)spilled;
}

static uintptr_t find_memory(const struct arch_frame *frame,
			     const struct recipe *recipe,
			     const struct part *part)
{
	struct reader reader = { .frame = frame };

	if (part->value.kind != PROTOTYPE_REFERENCE && !part->places.in_memory)
		return 0;
	begin_reader(&reader, frame, recipe);
	return read_part(&reader, part, NULL);
}

static void read_argument(struct thread *self, const struct reader *reader,
			  uint32_t i, struct shim_argument_range *range)
{
	const struct part *part = &reader->recipe->parts[i];

	range->start = read_part(reader, part, self->values->spilled[i]);
	range->length = part->value.size;
}

void values_fill(struct thread *self, const struct arch_frame *frame,
		 const struct recipe *recipe, struct shim_argument_info *info)
{
	struct reader reader = { .frame = frame };
	uint32_t n = 0;

	info->ranges_count = recipe->declared_count;
	info->total_size = recipe->total_size;
	begin_reader(&reader, frame, recipe);
	for (uint32_t i = 0; i < recipe->count; i++)
		if (!recipe->parts[i].value.is_hidden)
			read_argument(self, &reader, i, &info->ranges[n++]);
}

enum shim_unavailable values_get(struct thread *self,
				 const struct arch_frame *frame,
				 const struct recipe *recipe, uint32_t position,
				 struct shim_argument_range *range)
{
	struct reader reader = { .frame = frame };
	const struct part *part;
	uint32_t i = 0;

	*range = (struct shim_argument_range){ .start = 0 };
	for (; i < recipe->count; i++)
		if (!recipe->parts[i].value.is_hidden && position-- == 0)
			break;
	if (i == recipe->count)
		return SHIM_UNAVAILABLE_NONE;
	begin_reader(&reader, frame, recipe);
	read_argument(self, &reader, i, range);
	part = &recipe->parts[i];
	if (part->places.reason != SHIM_AVAILABLE)
		return part->places.reason;
	return range->start ? SHIM_AVAILABLE : SHIM_UNAVAILABLE_CODE;
}

struct shim_argument_info *values_answer(struct thread *self,
					 const struct arch_frame *frame)
{
	const struct recipe *recipe;

	if (values_find(self, frame, &recipe) != SHIM_OK)
		return NULL;
	values_fill(self, frame, recipe, &self->values->passed.info);
	return &self->values->passed.info;
}
