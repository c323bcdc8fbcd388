/*
 * Recipes for arguments, and their reading: tables of locations, of callers' expressions
 * and of calls, with functions in place of the decoder and of debug information.
 */
#include "inspect/code.h"
#include "inspect/info.h"
#include "inspect/known.h"
#include "inspect/moved_code.h"
#include "inspect/recipe.h"
#include "os/sys.h"
#include "runtime/state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#define RBX	     3
#define RBP	     5
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* The registers at a hook, and the program's stack above the frame. */
static struct {
	struct arch_arguments arguments;
	struct arch_frame frame;
	uintptr_t stack[64];
} hook;

static struct arch_entry entry;
static uintptr_t entry_stack[4];

/* @registers is as has_registers; the hook of a mark, if 0. */
static void set_hook(unsigned registers)
{
	memset(&hook, 0, sizeof(hook));
	for (unsigned i = 0; i < 64; i++)
		hook.stack[i] = 0x8005000000005000 + i;
	for (unsigned i = 0; i < 6; i++)
		entry.integers[i] = 0x6000 + i;
	for (unsigned i = 0; i < 8; i++)
		for (unsigned j = 0; j < 16; j++) {
			entry.vectors[i][j] = (unsigned char)(i * 16 + j);
			hook.arguments.vectors[i][j] = (unsigned char)(0x80 +
								       i * 16 +
								       j);
		}
	for (unsigned i = 0; i < 4; i++)
		entry_stack[i] = 0x7000 + i;
	entry.stack = (uintptr_t)entry_stack;
	hook.arguments.rcx = 0x1c;
	hook.arguments.rdx = 0x1d;
	hook.frame.has_registers = (uint16_t)registers;
	hook.frame.near = &entry;
	hook.frame.rbx = 0xb;
	hook.frame.rbp = (uintptr_t)&hook.stack[20];
	hook.frame.r12 = 0x12;
	hook.frame.r13 = 0x13;
	hook.frame.r14 = 0x14;
	hook.frame.r15 = 0x15;
	hook.frame.function = 0x401000;
	hook.frame.site = (const void *)0x402000;
	hook.frame.return_address = 0x401010;
}

/* --- what the decoder and debug information know --- */

static struct decode_places found_places[PROTOTYPE_VALUES_MAX];
static struct decode_frame found_frame;
static struct decode_location asked_location;
static bool decoder_is_open;
static uintptr_t bad_byte;
static struct decode_call asked_call;
static bool is_call, has_way, has_code;
static struct decode_way found_way;
static struct decode_passed found_passed;
static uint32_t caller_ranges;
static bool is_outside, is_known_function;
static struct debuginfo_answer found_answer;
static uintptr_t moved_to;

int sys_peek(const void *from, void *to, size_t size)
{
	(void)to;
	cr_assert(eq(sz, size, 1));
	return (uintptr_t)from == bad_byte ? -EFAULT : 0;
}

bool known_has(uintptr_t function)
{
	return is_known_function && function == 0x401000;
}

uintptr_t info_code_end(shim_function function)
{
	return (uintptr_t)function + 0x100;
}

uint32_t info_code_ranges(shim_function function, uint32_t room,
			  struct decode_range *ranges)
{
	(void)function;
	(void)ranges;
	return caller_ranges < room ? caller_ranges : room;
}

bool code_find_arguments(const struct decode_location *location,
			 struct decode_frame *frame,
			 struct decode_places *places)
{
	asked_location = *location;
	if (!decoder_is_open)
		return false;
	*frame = found_frame;
	memcpy(places + 1, found_places,
	       (location->count - 1) * sizeof(places[0]));
	return true;
}

bool code_calls(struct decode_call *call)
{
	asked_call = *call;
	call->number = 12;
	return is_call;
}

bool code_way(struct decode_way *way)
{
	cr_expect(eq(u64, way->site, 0x402000));
	cr_expect(eq(u64, way->caller, 0x403000));
	memcpy(way->written, found_way.written, sizeof(way->written));
	memcpy(way->sources, found_way.sources, sizeof(way->sources));
	return has_way;
}

bool code_passed(struct decode_passed *passed)
{
	cr_expect(eq(u64, passed->site, 0x402000));
	cr_expect(eq(u32, passed->age, 9));
	cr_expect(eq(u32, passed->range_count, caller_ranges));
	passed->count = found_passed.count;
	memcpy(passed->values, found_passed.values, sizeof(passed->values));
	return has_code;
}

enum shim_result info_ask_prototype(
	shim_function function, uintptr_t return_address,
	void (*use)(const struct debuginfo_answer *answer, void *argument),
	void *argument)
{
	cr_expect(eq(u64, (uintptr_t)function, 0x401000));
	cr_expect(eq(u64, return_address, 0x401010));
	use(&found_answer, argument);
	return SHIM_OK;
}

enum shim_result info_ask_callsite(
	enum helper_verb verb, uintptr_t site, shim_function function,
	void (*use)(const struct debuginfo_answer *answer, void *argument),
	void *argument)
{
	cr_expect(eq(int, verb, HELPER_CALLSITE));
	cr_expect(eq(u64, site, 0x402000));
	cr_expect(eq(u64, (uintptr_t)function, 0x401000));
	if (found_answer.data)
		use(&found_answer, argument);
	return SHIM_E_UNEXPECTED;
}

bool info_is_called_from_outside(uintptr_t site, shim_function function,
				 uintptr_t *caller)
{
	cr_expect(eq(u64, site, 0x402000));
	cr_expect(eq(u64, (uintptr_t)function, 0x401000));
	*caller = 0x403000;
	return is_outside;
}

static void move_code(struct moved_code *moved)
{
	cr_expect(eq(u64, moved->function, 0x401000));
	if (moved_to)
		moved->code = moved_to;
}
SUBSCRIBE(moved_code_wanted, move_code);

/* --- reading --- */

static _Alignas(struct recipe) unsigned char memory[2][sizeof(struct recipe) +
						       4 * sizeof(struct part)];
static struct recipe *const recipe = (void *)memory[0];
static struct part *const part =
	&((struct recipe *)(void *)memory[0])->parts[0];

/* One part of 8 bytes, and a base in rbp. */
static void clear_recipe(void)
{
	memset(memory, 0, sizeof(memory));
	recipe->count = 1;
	recipe->cached.function = 0x401000;
	recipe->frame.number = RBP;
	recipe->frame.is_known = true;
	recipe->frame.offset = 16;
	part->value.size = 8;
	part->value.kind = PROTOTYPE_REGISTERS;
}

static bool read_part(uint64_t value[2])
{
	static unsigned char spilled[REGISTER_MAX];
	struct recipe_reader reader = { .base = 0 };
	uintptr_t at;

	memset(spilled, 0xee, sizeof(spilled));
	recipe_begin_reader(&reader, &hook.frame, recipe);
	at = recipe_read(&reader, part, spilled);
	memcpy(value, spilled, 16);
	cr_expect(at == 0 || at == (uintptr_t)spilled);
	return at != 0;
}

#define STACK(i) (0x8005000000005000 + (i))
#define NONE	 0xdead

static const struct {
	const char *name;
	uint8_t registers, where, number;
	int32_t offset;
	uint64_t value;
} places[] = {
#define PLACES
#include "recipe_cases.def"
#undef PLACES
};

Test(recipe, values_are_read_from_their_places)
{
	uint64_t value[2];

	for (size_t i = 0; i < COUNT(places); i++) {
		struct decode_place place = { .where = places[i].where,
					      .number = places[i].number,
					      .offset = places[i].offset };

		set_hook(places[i].registers);
		clear_recipe();
		part->places.eightbytes[0] = place;
		if (places[i].value == NONE) {
			cr_expect(not(read_part(value)), "%s", places[i].name);
			continue;
		}
		cr_expect(read_part(value), "%s", places[i].name);
		cr_expect(eq(u64, value[0], places[i].value), "%s",
			  places[i].name);
		cr_expect(eq(u64, value[1], 0xeeeeeeeeeeeeeeee), "%s",
			  places[i].name);
		/* The same as the second eightbyte, which begins in r13. */
		if (places[i].registers == 0)
			continue;
		part->value.size = 9;
		part->places.eightbytes[0] = (struct decode_place){
			.where = DECODE_IN_REGISTER, .number = 13
		};
		part->places.eightbytes[1] = place;
		cr_expect(read_part(value), "%s", places[i].name);
		cr_expect(eq(u64, value[0], 0x13), "%s", places[i].name);
		cr_expect(eq(u64, value[1], places[i].value), "%s",
			  places[i].name);
	}
}

Test(recipe, the_stack_pointer_and_an_entrys_stack_are_places)
{
	uint64_t value[2];

	set_hook(1);
	clear_recipe();
	part->places.eightbytes[0].where = DECODE_IN_REGISTER;
	part->places.eightbytes[0].number = DECODE_SP;
	cr_expect(read_part(value));
	cr_expect(eq(u64, value[0], (uintptr_t)hook.stack));

	set_hook(0);
	part->value.size = 16;
	part->places.eightbytes[0] = (struct decode_place){
		.where = DECODE_AT_ENTRY, .number = 1
	};
	part->places.eightbytes[1] = (struct decode_place){
		.where = DECODE_ABOVE_ENTRY, .offset = 16
	};
	cr_expect(read_part(value));
	cr_expect(eq(u64, value[0], 0x6001));
	cr_expect(eq(u64, value[1], 0x7002));
	set_hook(1);
	part->places.eightbytes[0] = (struct decode_place){
		.where = DECODE_IN_REGISTER, .number = 12
	};
	cr_expect(not(read_part(value)));
}

/* The memory of values that are not in registers: an offset in the stack. */
static const struct {
	const char *name;
	uint8_t kind, in_memory, where, registers, is_known;
	int32_t offset;
	long at; /* -1: unavailable */
} memories[] = {
	{ "on the stack", PROTOTYPE_MEMORY, 1, DECODE_ON_STACK, 1, 1, 8,
	  23 * 8 },
	{ "of an unknown frame", PROTOTYPE_MEMORY, 1, DECODE_ON_STACK, 1, 0, 8,
	  -1 },
	{ "above the stack pointer", PROTOTYPE_MEMORY, 1, DECODE_ABOVE_SP, 1, 1,
	  40, 40 },
	{ "above it, in registers", PROTOTYPE_REGISTERS, 0, DECODE_ABOVE_SP, 1,
	  1, 40, -1 },
	{ "a reference", PROTOTYPE_REFERENCE, 0, DECODE_IN_REGISTER, 1, 1, 0,
	  20 * 8 },
	{ "a reference of a mark", PROTOTYPE_REFERENCE, 0, DECODE_IN_REGISTER,
	  0, 1, 0, -1 },
};

Test(recipe, memory_is_found_without_a_copy)
{
	for (size_t i = 0; i < COUNT(memories); i++) {
		uintptr_t want = memories[i].at < 0 ?
					 0 :
					 (uintptr_t)hook.stack +
						 (uintptr_t)memories[i].at;

		set_hook(memories[i].registers);
		clear_recipe();
		part->value.kind = memories[i].kind;
		part->value.size = 24;
		part->places.in_memory = memories[i].in_memory;
		recipe->frame.is_known = memories[i].is_known;
		part->places.eightbytes[0] = (struct decode_place){
			.where = memories[i].where,
			.number = RBP,
			.offset = memories[i].offset,
		};
		cr_expect(eq(u64, recipe_find_memory(&hook.frame, recipe, part),
			     want),
			  "%s", memories[i].name);
		part->places.reason = SHIM_UNAVAILABLE_CODE;
		cr_expect(zero(u64,
			       recipe_find_memory(&hook.frame, recipe, part)),
			  "%s", memories[i].name);
	}
	set_hook(0);
	clear_recipe();
	part->value.kind = PROTOTYPE_MEMORY;
	part->places.in_memory = true;
	part->places.eightbytes[0] = (struct decode_place){
		.where = DECODE_ABOVE_ENTRY, .offset = 8
	};
	cr_expect(eq(u64, recipe_find_memory(&hook.frame, recipe, part),
		     (uintptr_t)&entry_stack[1]));
	set_hook(1);
	cr_expect(zero(u64, recipe_find_memory(&hook.frame, recipe, part)));
}

Test(recipe, an_argument_of_padding_is_zeros)
{
	uint64_t value[2];

	set_hook(1);
	clear_recipe();
	part->value.kind = PROTOTYPE_NOTHING;
	part->value.size = 1;
	cr_expect(read_part(value));
	cr_expect(zero(u64, value[0]));
	cr_expect(zero(u64, value[1]));
}

Test(recipe, a_kept_register_has_an_index)
{
	for (unsigned number = 0; number < 32; number++) {
		int want = number == 3	? 0 :
			   number == 5	? 1 :
			   number < 12	? -1 :
			   number <= 15 ? (int)number - 10 :
					  -1;

		cr_expect(eq(int, recipe_kept_index(number), want));
	}
}

Test(recipe, a_register_with_the_callee_confirms_a_call)
{
	set_hook(1);
	clear_recipe();
	cr_expect(recipe_is_called_by(&hook.frame, recipe));
	recipe->guard = 12;
	cr_expect(not(recipe_is_called_by(&hook.frame, recipe)));
	recipe->frame.kept[2] = (struct decode_place){
		.where = DECODE_IN_REGISTER, .number = RBX
	};
	cr_expect(not(recipe_is_called_by(&hook.frame, recipe)));
	hook.frame.rbx = 0x401000;
	cr_expect(recipe_is_called_by(&hook.frame, recipe));
	recipe->frame.kept[2] = (struct decode_place){ .where = DECODE_ON_STACK,
						       .offset = 0 };
	cr_expect(not(recipe_is_called_by(&hook.frame, recipe)));
	hook.stack[22] = 0x401000;
	cr_expect(recipe_is_called_by(&hook.frame, recipe));
}

/* --- expressions of callers --- */

#define CONSTANT(n) \
	{ \
		CALLSITE_CONSTANT, 0, n \
	}
#define REGISTER(n, v) \
	{ \
		CALLSITE_REGISTER, n, v \
	}
#define AT_SP(v) \
	{ \
		CALLSITE_SP, 0, v \
	}
#define LOAD(size) \
	{ \
		CALLSITE_LOAD, size, 0 \
	}
#define STEP(operation) \
	{ \
		CALLSITE_##operation, 0, 0 \
	}
#define ONE_OF(a, b, operation, value) \
	{ \
#operation " " #a ", " #b, 3, \
			{ CONSTANT(a), CONSTANT(b), STEP(operation) }, value \
	}

static const struct {
	const char *name;
	uint8_t count;
	struct callsite_step steps[CALLSITE_STEPS_MAX];
	uint64_t value;
} expressions[] = {
#define EXPRESSIONS
#include "recipe_cases.def"
#undef EXPRESSIONS
};

/* The caller's registers, and its stack pointer 8 above the base. */
static void set_kept(struct decode_frame *frame)
{
	frame->kept[0] = (struct decode_place){ .where = DECODE_ON_STACK,
						.offset = 24 };
	frame->kept[2] = (struct decode_place){ .where = DECODE_IN_REGISTER,
						.number = 15 };
}

static void set_expression(struct callsite_value *value, size_t i)
{
	value->count = expressions[i].count;
	memcpy(value->steps, expressions[i].steps, sizeof(value->steps));
}

Test(recipe, expressions_of_callers_are_computed)
{
	for (size_t i = 0; i < COUNT(expressions); i++) {
		uint64_t value[2];

		set_hook(1);
		clear_recipe();
		set_kept(&recipe->frame);
		part->has_passed = true;
		set_expression(&part->passed[0], i);
		cr_expect(
			eq(int, read_part(value), expressions[i].value != NONE),
			"%s", expressions[i].name);
		if (expressions[i].value == NONE)
			continue;
		cr_expect(eq(u64, value[0], expressions[i].value), "%s",
			  expressions[i].name);
		/* Only what is nowhere else comes from the caller. */
		part->places.eightbytes[0] = (struct decode_place){
			.where = DECODE_IN_REGISTER, .number = 14
		};
		cr_expect(read_part(value));
		cr_expect(eq(u64, value[0], 0x14));
	}
}

/* --- making --- */

static struct values_space space;

/* The recipe of a hook with one parameter. */
static const struct recipe *make(struct prototype_value value,
				 struct decode_places at)
{
	struct recipe_job job = { .frame = &hook.frame,
				  .space = &space,
				  .age = 9 };

	space.value_count = 2;
	space.values[1] = value;
	found_places[0] = at;
	return recipe_make(&job);
}

#define R DECODE_IN_REGISTER
#define S DECODE_ON_STACK

static const struct {
	const char *name;
	uint8_t kind;
	uint32_t size;
	bool in_memory;
	uint8_t where[2], is_unused[2];
	bool has_frame;
	uint8_t reason;
} reasons[] = {
#define CASE(name, kind, ...) \
	{ \
		name, PROTOTYPE_##kind, __VA_ARGS__ \
	}
#define REASONS
#include "recipe_cases.def"
#undef REASONS
#undef CASE
};

Test(recipe, an_argument_is_available_or_has_a_reason)
{
	decoder_is_open = true;
	for (size_t i = 0; i < COUNT(reasons); i++) {
		struct decode_places at = {
			.in_memory = reasons[i].in_memory,
			.reason = SHIM_UNAVAILABLE_INLINED,
		};
		const struct recipe *made;

		set_hook(1);
		for (int j = 0; j < 2; j++) {
			at.eightbytes[j].where = reasons[i].where[j];
			at.eightbytes[j].number = RBP;
			at.eightbytes[j].is_unused = reasons[i].is_unused[j];
		}
		found_frame.is_known = reasons[i].has_frame;
		found_frame.number = RBP;
		made = make((struct prototype_value){ .kind = reasons[i].kind,
						      .size = reasons[i].size },
			    at);
		cr_expect(
			eq(u8, made->parts[0].places.reason, reasons[i].reason),
			"%s", reasons[i].name);
		cr_expect(
			eq(int, made->asks_caller,
			   reasons[i].reason == SHIM_UNAVAILABLE_OPTIMIZED_OUT),
			"%s", reasons[i].name);
	}
}

/* Without its memory, an object cannot be what debug information says. */
Test(recipe, an_object_has_memory)
{
	static const struct {
		uint8_t kind;
		uint32_t size;
		long bad; /* from the object's beginning */
		uint8_t reason;
	} cases[] = {
		{ PROTOTYPE_MEMORY, 24, 0, SHIM_UNAVAILABLE_NOT_UNDERSTOOD },
		{ PROTOTYPE_MEMORY, 24, 23, SHIM_UNAVAILABLE_NOT_UNDERSTOOD },
		{ PROTOTYPE_MEMORY, 24, 24, 0 },
		{ PROTOTYPE_MEMORY, 24, -1, 0 },
		{ PROTOTYPE_REFERENCE, 1, 0, SHIM_UNAVAILABLE_NOT_UNDERSTOOD },
		{ PROTOTYPE_REFERENCE, 0, 0, 0 },
		{ PROTOTYPE_REFERENCE, 0, -1, 0 },
	};

	decoder_is_open = true;
	for (size_t i = 0; i < COUNT(cases); i++) {
		bool is_reference = cases[i].kind == PROTOTYPE_REFERENCE;
		struct decode_places at = {
			.in_memory = !is_reference,
			.eightbytes[0] = { .where = is_reference ?
							    R :
							    DECODE_ABOVE_SP,
					   .number = RBP,
					   .offset = 160 },
		};

		set_hook(1);
		bad_byte = (uintptr_t)&hook.stack[20] + (uintptr_t)cases[i].bad;
		cr_expect(eq(u8,
			     make(
				     (struct prototype_value){
					     .kind = cases[i].kind,
					     .size = cases[i].size },
				     at)
				     ->parts[0]
				     .places.reason,
			     cases[i].reason),
			  "case %zu", i);
	}
	/* A reference that is NULL is no memory. */
	hook.frame.rbp = 0;
	bad_byte = 0;
	cr_expect(zero(
		u8,
		make((struct prototype_value){ .kind = PROTOTYPE_REFERENCE,
					       .size = 8 },
		     (struct decode_places){
			     .eightbytes[0] = { .where = R, .number = RBP } })
			->parts[0]
			.places.reason));
}

Test(recipe, a_recipe_has_its_function_and_its_parameters)
{
	struct recipe_job job = { .frame = &hook.frame,
				  .space = &space,
				  .age = 9 };
	const struct recipe *made;

	set_hook(1);
	made = recipe_make(&job);
	cr_expect(eq(int, made->result, SHIM_E_FUNCTION_NOT_IL));
	cr_expect(eq(u32, made->cached.size, sizeof(*made)));
	cr_expect(zero(u64, asked_location.function));

	space.value_count = 4;
	space.values[0].may_tail_call = 1;
	space.values[1] = (struct prototype_value){ .size = 3 };
	space.values[2] = (struct prototype_value){ .size = 8, .is_hidden = 1 };
	space.values[3] = (struct prototype_value){ .size = 40 };
	for (int marked = 0; marked < 4; marked++) {
		set_hook(marked == 0);
		moved_to = marked == 3 ? 0x405000 : 0;
		is_known_function = marked == 2;
		decoder_is_open = marked < 2;
		memset(found_places, 0, sizeof(found_places));
		found_places[2].eightbytes[0].entry = 77;
		made = recipe_make(&job);
		cr_expect(eq(int, made->result, SHIM_OK));
		cr_expect(eq(u64, made->cached.address, 0x401010));
		cr_expect(eq(u64, made->cached.function, 0x401000));
		cr_expect(zero(u64, made->cached.site));
		cr_expect(eq(u32, made->cached.age, marked < 2 ? 9 : 0));
		cr_expect(eq(u32, made->cached.size,
			     sizeof(*made) + 3 * sizeof(made->parts[0])));
		cr_expect(eq(u32, made->count, 3));
		cr_expect(eq(u32, made->declared_count, 2));
		cr_expect(eq(u32, made->total_size, 43));
		cr_expect(made->may_tail_call);
		cr_expect(eq(u32, made->parts[2].value.size, 40));
		cr_expect(eq(u8, made->parts[2].places.eightbytes[0].entry,
			     marked < 2 ? 77 : 0));
		cr_expect(eq(u8, made->parts[0].places.reason,
			     marked < 2 ? 0 : SHIM_UNAVAILABLE_CODE));
		cr_expect(eq(u64, asked_location.function, 0x401000));
		cr_expect(eq(u64, asked_location.end, 0x401100));
		cr_expect(eq(u64, asked_location.hook, 0x401010));
		cr_expect(eq(u64, asked_location.entry,
			     marked == 0 ? 0 :
			     moved_to	 ? moved_to :
					   0x401010));
		cr_expect(eq(int, asked_location.is_complete, marked == 2));
		cr_expect(eq(u32, asked_location.count, 4));
		cr_expect(eq(ptr, (void *)asked_location.values, space.values));
	}
}

/* --- recipes of call sites --- */

/* The primary recipe's part is of one kind, and was in register 7 at the entry; its
 * function does not use it. */
static void set_call(void)
{
	set_hook(1);
	clear_recipe();
	set_kept(&recipe->frame);
	recipe->guard = 0;
	part->places.reason = SHIM_UNAVAILABLE_OPTIMIZED_OUT;
	part->places.eightbytes[0].entry = 8;
	memset(&space, 0, sizeof(space));
	memset(&found_passed, 0, sizeof(found_passed));
	memset(&found_way, 0, sizeof(found_way));
	space.callsite.caller = 0x403000;
	space.callsite.count = 1;
	space.callsite.values[0] = (struct callsite_value){
		.entry = 8, .size = 8, .count = 1, .steps = { CONSTANT(5) }
	};
	is_call = true;
	has_way = has_code = false;
	caller_ranges = 1;
}

static const struct recipe *make_site(void)
{
	struct recipe_job job = { .frame = &hook.frame,
				  .space = &space,
				  .primary = recipe,
				  .age = 9 };
	const struct recipe *made = recipe_make(&job);

	cr_expect(eq(u64, made->cached.site, 0x402000));
	cr_expect(eq(u32, made->cached.age, 9));
	if (made->same) {
		cr_expect(eq(ptr, (void *)made->same, recipe));
		cr_expect(zero(u32, made->count));
		cr_expect(zero(u8, made->guard));
		cr_expect(eq(u32, made->cached.size, sizeof(*made)));
	} else {
		cr_expect(eq(u32, made->count, recipe->count));
		cr_expect(eq(u8, made->guard, 12));
		cr_expect(made->parts[0].places.reason == SHIM_AVAILABLE);
	}
	return made;
}

static bool is_better(void)
{
	return make_site()->same == NULL;
}

Test(recipe, a_caller_passes_what_a_function_does_not_use)
{
	const struct recipe *made;

	set_call();
	recipe->may_tail_call = true;
	made = make_site();
	cr_assert(eq(ptr, (void *)made->same, NULL));
	cr_expect(made->parts[0].has_passed);
	cr_expect(eq(i64, made->parts[0].passed[0].steps[0].value, 5));
	cr_expect(eq(u64, asked_call.function, 0x401000));
	cr_expect(eq(u64, asked_call.end, 0x401100));
	cr_expect(eq(u64, asked_call.site, 0x402000));
	cr_expect(zero(u64, asked_call.entry));
	cr_expect(asked_call.may_tail_call);

	set_hook(0);
	moved_to = 0x405000;
	make_site();
	cr_expect(eq(u64, asked_call.entry, 0x405000));
	cr_expect(asked_call.may_tail_call);

	set_call();
	is_call = false;
	cr_expect(not(is_better()));

	/* A part that is available stays; one that is nowhere for another reason, too. */
	set_call();
	part->places.reason = SHIM_AVAILABLE;
	cr_expect(not(is_better()));
	part->places.reason = SHIM_UNAVAILABLE_CODE;
	cr_expect(not(is_better()));

	/* One of two is enough for a recipe. */
	for (int second = 0; second < 2; second++) {
		set_call();
		recipe->count = 2;
		recipe->parts[1] = recipe->parts[0];
		recipe->parts[second].places.reason = SHIM_UNAVAILABLE_CODE;
		made = second ? make_site() : NULL;
		if (made) {
			cr_expect(eq(ptr, (void *)made->same, NULL));
			cr_expect(not(made->parts[1].has_passed));
			cr_expect(eq(u8, made->parts[1].places.reason,
				     SHIM_UNAVAILABLE_CODE));
		}
	}
	set_call();
	recipe->count = 2;
	recipe->parts[1] = recipe->parts[0];
	recipe->parts[1].places.eightbytes[0].entry = 7;
	cr_expect(is_better());

	/* What is in a register that the function does not use. */
	set_call();
	space.callsite.count = 0;
	part->places.eightbytes[0].where = R;
	part->places.eightbytes[0].is_unused = true;
	cr_expect(is_better());
}

Test(recipe, who_knows_all_callers_may_pass_less)
{
	static const struct {
		uint8_t is_optional, kind, is_local, where;
		bool is_complete, is_better;
	} cases[] = {
		{ 0, PROTOTYPE_REGISTERS, 0, 0, false, true },
		{ 1, PROTOTYPE_REGISTERS, 0, 0, false, false },
		{ 1, PROTOTYPE_REGISTERS, 0, 0, true, true },
		{ 0, PROTOTYPE_REFERENCE, 0, 0, false, false },
		{ 0, PROTOTYPE_REFERENCE, 0, 0, true, true },
		{ 0, PROTOTYPE_REGISTERS, 1, 0, false, true },
		{ 0, PROTOTYPE_REGISTERS, 1, DECODE_AT_ENTRY, false, false },
		{ 0, PROTOTYPE_REGISTERS, 0, DECODE_AT_ENTRY, false, true },
		{ 0, PROTOTYPE_REGISTERS, 1, DECODE_AT_ENTRY, true, true },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		set_call();
		part->value.is_optional = cases[i].is_optional;
		part->value.kind = cases[i].kind;
		part->value.is_local = cases[i].is_local;
		part->places.eightbytes[0].where = cases[i].where;
		space.callsite.is_complete = cases[i].is_complete;
		cr_expect(eq(int, is_better(), cases[i].is_better), "case %zu",
			  i);
	}
}

/* The value of a caller, of a size and for a register, for the part. */
Test(recipe, a_callers_value_has_the_register_and_the_size)
{
	static const struct {
		const char *name;
		uint8_t kind, is_whole;
		uint32_t size;
		uint8_t entries[2]; /* of the part */
		struct {
			uint8_t entry, size;
		} values[2];
		bool is_better;
	} cases[] = {
#define CASE(name, kind, ...) \
	{ \
		name, PROTOTYPE_##kind, __VA_ARGS__ \
	}
#define VALUES
#include "recipe_cases.def"
#undef VALUES
#undef CASE
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		set_call();
		part->value.kind = cases[i].kind;
		part->value.is_whole = cases[i].is_whole;
		part->value.size = cases[i].size;
		space.callsite.is_complete = true;
		space.callsite.count = 2;
		for (int j = 0; j < 2; j++) {
			part->places.eightbytes[j].entry = cases[i].entries[j];
			space.callsite.values[j] = (struct callsite_value){
				.entry = cases[i].values[j].entry,
				.size = cases[i].values[j].size,
				.count = 1,
				.steps = { CONSTANT(j) },
			};
		}
		cr_expect(eq(int, is_better(), cases[i].is_better), "%s",
			  cases[i].name);
	}
}

Test(recipe, a_callers_expression_can_be_read)
{
	static const struct {
		struct callsite_step step;
		bool has_frame, is_overwritten, is_better;
	} cases[] = {
		{ CONSTANT(3), false, true, true },
		{ REGISTER(12, 0), false, true, true },
		{ REGISTER(13, 0), true, false, false }, /* lost */
		{ REGISTER(0, 0), true, false, false },
		{ AT_SP(0), true, true, true },
		{ AT_SP(0), false, false, false },
		{ LOAD(8), true, false, true },
		{ LOAD(8), true, true, false },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		for (uint8_t at = 0; at < 2; at++) {
			struct callsite_value *value =
				&space.callsite.values[0];

			set_call();
			value->count = (uint8_t)(at + 1);
			value->steps[at] = cases[i].step;
			recipe->frame.is_known = cases[i].has_frame;
			recipe->frame.is_overwritten = cases[i].is_overwritten;
			cr_expect(eq(int, is_better(), cases[i].is_better),
				  "case %zu", i);
		}
}

/* clang's expressions are true if the argument was written after its sources. */
Test(recipe, operands_that_may_have_changed_are_not_used)
{
	static const struct {
		struct callsite_step step;
		unsigned source;
		uint32_t written, written_source;
		bool has_way, is_better;
	} cases[] = {
		{ REGISTER(12, 0), 12, 3, 4, true, true },
		{ REGISTER(12, 0), 12, 3, 3, true, false },
		{ REGISTER(12, 0), 12, 3, 2, true, false },
		{ REGISTER(12, 0), 13, 3, 4, true, false },
		{ REGISTER(12, 0), 12, 3, 4, false, false },
		{ AT_SP(0), DECODE_SP, 3, 4, true, true },
		{ AT_SP(0), DECODE_SP, 3, 2, true, false },
		{ AT_SP(0), 12, 3, 4, true, false },
		{ CONSTANT(1), 12, 3, 2, true, true },
		{ CONSTANT(1), 12, 3, 4, false, false },
		{ LOAD(8), 12, 3, 4, true, false },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		for (int loose = 0; loose < 2; loose++) {
			struct callsite_value *values = space.callsite.values;

			set_call();
			space.callsite.is_loose = loose;
			space.callsite.count = 2;
			/* One that is dropped before it. */
			values[1] = values[0];
			values[0].entry = 7;
			values[0].steps[0] = (struct callsite_step)LOAD(8);
			values[1].steps[0] = cases[i].step;
			found_way.sources[7] = 1u << cases[i].source;
			found_way.written[7] = cases[i].written;
			found_way.written[cases[i].source] =
				cases[i].written_source;
			has_way = cases[i].has_way;
			cr_expect(eq(int, is_better(),
				     loose ? cases[i].is_better : true),
				  "case %zu, %d", i, loose);
			if (loose)
				cr_expect(eq(u32, space.callsite.count,
					     cases[i].is_better));
		}
}

Test(recipe, the_callers_code_comes_before_debug_information)
{
	const struct recipe *made;

	for (int has = 0; has < 3; has++) {
		set_call();
		has_code = has > 0;
		caller_ranges = has == 2 ? DEBUGINFO_RANGES : 3;
		found_passed.count = 1;
		found_passed.values[0] = (struct callsite_value){
			.entry = 8,
			.size = 8,
			.count = 1,
			.steps = { CONSTANT(6) }
		};
		made = make_site();
		cr_expect(eq(i64, made->parts[0].passed[0].steps[0].value,
			     has == 1 ? 6 : 5));
		cr_expect(eq(u32, space.callsite.count, has == 1 ? 2 : 1));
	}
	/* There is room for all but the last of two. */
	set_call();
	has_code = true;
	space.callsite.count = 2;
	space.callsite.values[1] = space.callsite.values[0];
	space.callsite.values[1].entry = 9;
	found_passed.count = CALLSITE_VALUES_MAX - 1;
	made = make_site();
	cr_expect(eq(i64, made->parts[0].passed[0].steps[0].value, 5));
	cr_expect(eq(u32, space.callsite.count, CALLSITE_VALUES_MAX));
}

/* --- queries --- */

Test(recipe, a_prototype_is_asked_for_once_and_then_each_call)
{
	static struct prototype_value values[3] = { { .size = 1 },
						    { .size = 2 },
						    { .size = 3 } };
	static const struct callsite callsite = { .caller = 0x404000,
						  .count = 7 };
	struct recipe_job job = { .frame = &hook.frame };

	set_hook(1);
	found_answer = (struct debuginfo_answer){ .data = values, .count = 3 };
	cr_expect(eq(int, recipe_query(&job, &space), SHIM_OK));
	cr_expect(eq(u32, space.value_count, 3));
	cr_expect(eq(u32, space.values[2].size, 3));
	values[0].is_alone = 1;
	cr_expect(eq(int, recipe_query(&job, &space), SHIM_OK));
	cr_expect(zero(u32, space.value_count));

	job.primary = recipe;
	space.callsite.count = 4;
	is_outside = true;
	cr_expect(eq(int, recipe_query(&job, &space), SHIM_OK));
	cr_expect(space.callsite.is_complete);
	cr_expect(eq(u64, space.callsite.caller, 0x403000));
	cr_expect(zero(u32, space.callsite.count));
	is_outside = false;
	found_answer.data = NULL;
	cr_expect(eq(int, recipe_query(&job, &space), SHIM_E_UNEXPECTED));
	cr_expect(not(space.callsite.is_complete));
	found_answer.data = &callsite;
	cr_expect(eq(int, recipe_query(&job, &space), SHIM_E_UNEXPECTED));
	cr_expect(eq(u64, space.callsite.caller, 0x404000));
	cr_expect(eq(u32, space.callsite.count, 7));
}
