/*
 * Results of functions at their leave hooks.  A recipe describes how the code after the
 * hook computes the result.  shim runs the recipe on the saved registers, and so has
 * the result before the program has computed it.
 *
 * At a mark where the function returns, the result is in the registers of the calling
 * convention (arch_exit).
 */
#include "inspect/results.h"

#include "inspect/code.h"
#include "inspect/code_cache.h"
#include "inspect/info.h"
#include "inspect/moved_code.h"
#include "inspect/prototype.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <shim/record.h>
#include <stddef.h>

#include <shim/banned.h>

#define DRAFT_SIZE (32u << 10)
#define RANGES_MAX 16

struct recipe {
	struct code_cache_entry cached;
	uint32_t length; /* of the result */
	enum shim_result result;
	/* At a mark: the compiler may have dropped the result, because no caller uses it.
	 * Cleared once a caller is found that uses it. */
	bool is_doubtful;
	struct decode_recipe code;
};

/* Memory of a thread, from its first query on.  The program's stack may be too
 * small. */
struct results_space {
	uint32_t generation; /* number of runs of recipes */
	bool is_known; /* whether @value is set, from the last prototype */
	struct prototype_value value;
	struct decode_machine machine;
};

static struct code_cache recipes, near_table;

static inline const struct recipe *find_recipe(uintptr_t address,
					       uintptr_t function)
{
	return (const void *)code_cache_find(&recipes, address, function, 0);
}

/* Call sites that do not use the result of a doubtful recipe. */
static struct code_cache idle_sites;
#define IDLE_SITES_MAX (1u << 15)

/* --- making a recipe --- */

struct job {
	const struct arch_frame *frame;
	const struct results_space *space;
	uint32_t age; /* the age before the query */
	const struct recipe *made;
};

static _Alignas(struct recipe) unsigned char draft[DRAFT_SIZE];

/* Makes the recipe from the code, for functions with a result. */
static void decode_code(const struct job *job, struct recipe *recipe)
{
	static struct decode_range ranges[RANGES_MAX];
	struct decode_leaving leaving = {
		.function = recipe->cached.function,
		.hook = recipe->cached.address,
		.value = &job->space->value,
		.ranges = ranges,
	};
	bool may_come;
	const struct decode *decoder = code_decoder(&may_come);

	recipe->code.reason = SHIM_UNAVAILABLE_CODE;
	if (!decoder) {
		/* The decoder may be opened later, so the next query tries again. */
		if (may_come)
			recipe->cached.age = 0;
		return;
	}
	leaving.range_count = info_code_ranges(recipe->cached.function,
					       RANGES_MAX, ranges);
	if (!decoder->result(&leaving, &recipe->code,
			     DRAFT_SIZE -
				     (uint32_t)offsetof(struct recipe, code)))
		recipe->code.reason = SHIM_UNAVAILABLE_CODE;
	else
		recipe->cached.size = (uint32_t)offsetof(struct recipe, code) +
				      recipe->code.size;
}

/* The key of a mark's recipe: no hook returns to the beginning of its function. */
static uintptr_t address_of(const struct arch_frame *frame)
{
	return arch_frame_exit(frame) ? frame->function : frame->return_address;
}

/* Where the calling convention puts the result. */
static uint8_t describe_exit(const struct prototype_value *value,
			     struct decode_recipe *code)
{
	code->result_size = value->size;
	code->is_whole = value->is_whole;
	code->classes[0] = value->classes[0];
	code->classes[1] = value->classes[1];
	switch (value->kind) {
	case PROTOTYPE_MEMORY:
	case PROTOTYPE_REFERENCE: code->is_address = true; break;
	case PROTOTYPE_X87:
		code->long_count = (uint8_t)(value->size / 16);
		break;
	case PROTOTYPE_REGISTERS:
		if (value->size > 0 && value->size <= 16)
			break;
		__attribute__((fallthrough));
	default: return SHIM_UNAVAILABLE_NOT_UNDERSTOOD;
	}
	return SHIM_AVAILABLE;
}

static void make_recipe(const struct job *job, struct recipe *recipe)
{
	const struct results_space *space = job->space;

	ASSERT_LOCKED();
	__builtin_memset(recipe, 0, sizeof(*recipe));
	recipe->cached.address = address_of(job->frame);
	recipe->cached.function = job->frame->function;
	recipe->cached.age = job->age;
	recipe->cached.size = sizeof(*recipe);
	if (!space->is_known) {
		recipe->result = SHIM_E_FUNCTION_NOT_IL;
		recipe->code.reason = SHIM_UNAVAILABLE_NO_DEBUG_INFORMATION;
		return;
	}
	recipe->length = space->value.size;
	recipe->is_doubtful = space->value.is_local;
	if (space->value.kind == PROTOTYPE_NOTHING)
		recipe->code.reason = SHIM_UNAVAILABLE_NONE;
	else if (arch_frame_exit(job->frame))
		recipe->code.reason = describe_exit(&space->value,
						    &recipe->code);
	else if (space->value.kind == PROTOTYPE_UNKNOWN &&
		 !space->value.is_wide)
		recipe->code.reason = SHIM_UNAVAILABLE_NOT_UNDERSTOOD;
	else
		decode_code(job, recipe);
}

static bool set_base(const struct arch_frame *frame, unsigned number,
		     struct results_place *place)
{
	const void *at = arch_frame_at(frame, number, false);

	if (number == DECODE_SP) {
		place->offset += (int32_t)(ARCH_FRAME_CFA(frame) -
					   (uintptr_t)frame);
		return true;
	}
	if (at)
		place->base = (int32_t)((uintptr_t)at - (uintptr_t)frame);
	return at;
}

/* Stores the simple form of the recipe: its locations in the frame. */
static bool set_place(const struct arch_frame *frame,
		      const struct recipe *recipe, struct results_near *near)
{
	const struct decode_simple *simple = &recipe->code.simple;
	struct results_place *place = &near->place;

	if (!set_base(frame, simple->number, place))
		return false;
	if (recipe->code.is_address)
		return !simple->is_loaded;
	if (simple->is_loaded)
		return simple->size >= recipe->length;
	place->offset = place->base;
	place->base = 0;
	return simple->number != DECODE_SP && simple->offset == 0;
}

/* State lock held. */
static void keep_near(const struct arch_frame *frame,
		      const struct recipe *recipe)
{
	const struct decode_simple *simple = &recipe->code.simple;
	const struct code_cache_entry *kept;
	struct results_near near;

	ASSERT_LOCKED();
	__builtin_memset(&near, 0, sizeof(near));
	near.cached = recipe->cached;
	near.cached.size = sizeof(near);
	near.length = recipe->length;
	near.place.offset = (int32_t)simple->offset;
	near.return_place.offset = simple->return_offset;
	if (!simple->is_simple || !frame->has_registers ||
	    recipe->cached.age == 0 ||
	    simple->offset != (int32_t)simple->offset ||
	    !set_base(frame, simple->return_number, &near.return_place) ||
	    !set_place(frame, recipe, &near))
		return;
	kept = code_cache_keep(&near_table, &near.cached);
	if (kept)
		code_cache_put_in_front(KNOWN_LEAVES, kept);
}

/* State lock held. */
static int store_recipe(void *argument)
{
	struct job *job = argument;
	struct recipe *recipe = (struct recipe *)draft;

	ASSERT_LOCKED();
	make_recipe(job, recipe);
	job->made = (const void *)code_cache_keep(&recipes, &recipe->cached);
	if (job->made)
		keep_near(job->frame, job->made);
	return job->made ? 0 : -1;
}

static void keep_answer(const struct debuginfo_answer *answer, void *argument)
{
	struct results_space *space = argument;

	space->is_known = true;
	space->value = *(const struct prototype_value *)answer->data;
}

static enum shim_result find_new(struct thread *self,
				 const struct arch_frame *frame,
				 const struct recipe **recipe)
{
	struct job job = {
		.frame = frame,
		.age = code_cache_age(),
		.space = self->results,
	};
	enum shim_result r;

	self->results->is_known = false;
	r = info_ask_prototype(frame->function, address_of(frame), keep_answer,
			       self->results);
	if (r == SHIM_E_NOT_YET_AVAILABLE)
		return r;
	if (r == SHIM_E_OUTOFMEMORY ||
	    state_call_locked(store_recipe, &job) < 0 || !job.made)
		return SHIM_E_UNEXPECTED;
	*recipe = job.made;
	return SHIM_OK;
}

/* --- running a recipe --- */

static inline uintptr_t read_register(const struct arch_frame *frame,
				      unsigned number)
{
	uintptr_t value = 0; /* also for no register */

	if (number == DECODE_SP)
		return ARCH_FRAME_CFA(frame);
	arch_frame_register(frame, number, &value);
	return value;
}

#define COPY(number) registers[number] = read_register(frame, number)

static void copy_registers(const struct arch_frame *frame, uint64_t *registers)
{
	COPY(3);
	COPY(DECODE_SP);
	COPY(5);
	COPY(12);
	COPY(13);
	COPY(14);
	COPY(15);
}

static uint64_t load_number(uintptr_t address, uint32_t size)
{
	switch (size) {
	case 1: return *(const volatile uint8_t *)address;
	case 2: return *(const volatile uint16_t *)address;
	case 4: return *(const volatile uint32_t *)address;
	default: return *(const volatile uint64_t *)address;
	}
}

/* Like run_recipe(), for recipes of the simple form. */
static inline void run_simple(struct results_space *space,
			      const struct arch_frame *frame,
			      const struct recipe *recipe,
			      struct results_value *value)
{
	const struct decode_simple *simple = &recipe->code.simple;
	uintptr_t at = read_register(frame, simple->return_number) +
		       (uintptr_t)(intptr_t)simple->return_offset,
		  result;

	value->start = 0;
	value->reason = SHIM_UNAVAILABLE_INLINED;
	if (*(const uintptr_t *)at != (uintptr_t)frame->site)
		return;
	value->reason = SHIM_AVAILABLE;
	result = (uintptr_t)simple->offset;
	if (simple->number)
		result += read_register(frame, simple->number);
	if (simple->is_loaded)
		result = load_number(result, simple->size);
	value->start = result;
	if (recipe->code.is_address)
		return;
	space->generation++;
	__builtin_memcpy(space->machine.result, &result, sizeof(result));
	value->start = (uintptr_t)space->machine.result;
}

/* Runs the recipe again if a signal handler has run one in the same memory. */
static void run_recipe(struct results_space *space,
		       const struct arch_frame *frame,
		       const struct recipe *recipe, struct results_value *value)
{
	bool may_come;
	const struct decode *decoder = code_decoder(&may_come);
	uint32_t generation;

	do {
		generation = ++space->generation;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		copy_registers(frame, &space->machine.registers[REGISTER_KEPT]);
		value->reason = decoder->run(&recipe->code, &space->machine,
					     (uintptr_t)frame->site,
					     &value->start);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} while (__atomic_load_n(&space->generation, __ATOMIC_RELAXED) !=
		 generation);
}

/* --- results at marks --- */

struct doubt {
	const struct arch_frame *frame;
	const struct decode_recipe *code;
	bool is_used;
};

/*
 * gcc's callers may keep a value in a register that they know the function to leave alone
 * (-fipa-ra).  It rarely does so if it marks entries: only behind #pragma GCC optimize.
 */
static bool may_change(const struct decode *decoder, uintptr_t function,
		       unsigned number)
{
	struct moved_code moved = { .function = function };
	struct decode_location location = {
		.function = function,
		.end = info_code_end(function),
	};

	NOTIFY(moved_code_wanted, &moved);
	location.entry = moved.code;
	return moved.code == 0 ||
	       (location.end && decoder->writes(&location, number));
}

/* State lock held. */
static int ask_caller(void *argument)
{
	struct doubt *doubt = argument;
	const struct arch_frame *frame = doubt->frame;
	struct code_cache_entry idle = {
		.address = frame->function,
		.function = frame->function,
		.site = (uintptr_t)frame->site,
		.age = code_cache_age(),
		.size = sizeof(idle),
	};
	bool may_come, is_vector = !doubt->code->is_address &&
				   doubt->code->classes[0] == PROTOTYPE_SSE;
	const struct decode *decoder = code_decoder(&may_come);

	ASSERT_LOCKED();
	doubt->is_used = decoder && doubt->code->long_count == 0 &&
			 decoder->reads(idle.site, is_vector ? 16 : 0) &&
			 may_change(decoder, frame->function,
				    is_vector ? 16 : 0);
	if (decoder && !doubt->is_used)
		code_cache_keep(&idle_sites, &idle);
	return 0;
}

/* Whether the function returns its result.  Only a caller that uses it is a proof. */
static bool is_returned(const struct arch_frame *frame,
			const struct recipe *recipe)
{
	struct doubt doubt = { .frame = frame, .code = &recipe->code };

	if (!__atomic_load_n(&recipe->is_doubtful, __ATOMIC_RELAXED))
		return true;
	if (code_cache_find(&idle_sites, frame->function, frame->function,
			    (uintptr_t)frame->site) ||
	    code_cache_count(&idle_sites) >= IDLE_SITES_MAX ||
	    state_call_locked(ask_caller, &doubt) < 0 || !doubt.is_used)
		return false;
	__atomic_store_n(&((struct recipe *)(uintptr_t)recipe)->is_doubtful,
			 false, __ATOMIC_RELAXED);
	return true;
}

/* Copies the result from the registers at a mark. */
static void read_exit(struct results_space *space,
		      const struct arch_exit *registers,
		      const struct decode_recipe *code,
		      struct results_value *value)
{
	unsigned char *to = space->machine.result;
	unsigned integers = 0, vectors = 0;

	space->generation++;
	value->start = (uintptr_t)to;
	if (code->is_address)
		value->start = registers->integers[0];
	else if (code->long_count == 2)
		arch_read_longs(to);
	else if (code->long_count)
		arch_read_long(to);
	else if (code->is_whole)
		__builtin_memcpy(to, registers->vectors[0], 16);
	else
		for (int i = 0; i < 2 && code->classes[i]; i++)
			__builtin_memcpy(
				to + 8 * i,
				code->classes[i] == PROTOTYPE_INTEGER ?
					(const void *)&registers
						->integers[integers++] :
					registers->vectors[vectors++],
				8);
}

static __attribute__((noinline)) enum shim_result
find_complete(struct thread *self, const struct arch_frame *frame,
	      const struct recipe *recipe, struct results_value *value)
{
	enum shim_result r;

	*value = (struct results_value){ .reason = SHIM_UNAVAILABLE_CODE };
	if (!self->results)
		self->results = shim_memory_map(sizeof(*self->results));
	if (!self->results)
		return SHIM_E_UNEXPECTED;
	if (!recipe) {
		r = find_new(self, frame, &recipe);
		if (r != SHIM_OK)
			return r;
	}
	value->length = recipe->length;
	value->reason = recipe->code.reason;
	if (value->reason == SHIM_AVAILABLE && arch_frame_exit(frame) &&
	    !is_returned(frame, recipe))
		value->reason = SHIM_UNAVAILABLE_OPTIMIZED_OUT;
	else if (value->reason == SHIM_AVAILABLE && arch_frame_exit(frame))
		read_exit(self->results, arch_frame_exit(frame), &recipe->code,
			  value);
	else if (value->reason == SHIM_AVAILABLE && frame->has_registers)
		run_recipe(self->results, frame, recipe, value);
	else if (value->reason == SHIM_AVAILABLE)
		value->reason = SHIM_UNAVAILABLE_CODE;
	return recipe->result;
}

enum shim_result results_find(struct thread *self,
			      const struct arch_frame *frame,
			      struct results_value *value)
{
	const struct recipe *recipe = find_recipe(address_of(frame),
						  frame->function);

	if (!recipe || !self->results || !recipe->code.simple.is_simple ||
	    !frame->has_registers)
		return find_complete(self, frame, recipe, value);
	value->length = recipe->length;
	run_simple(self->results, frame, recipe, value);
	return SHIM_OK;
}
