/*
 * Makes a recipe for the result of a function from the code after its leave hook, for
 * x86-64, System V.
 *
 * It translates the paths from the hook to `ret` to operations.  Then it removes the
 * operations that do not affect the result; mostly one move is left.  An unsupported
 * instruction ends a path.  A call ends it, too, because the function continues: the
 * hook belongs to an inlined function.
 */
#include "inspect/decode/decode.h"
#include "inspect/decode/instruction.h"
#include "inspect/decode/parts.h"
#include "inspect/decode/translate.h"

#include <string.h>

#define OPERATIONS_MAX 384
#define WAYS_MAX       16
#define SP	       4
#define BP	       5

struct draft {
	const struct decode_leaving *leaving;
	struct operation operations[OPERATIONS_MAX];
	uintptr_t addresses[OPERATIONS_MAX]; /* 0: not an instruction's first */
	unsigned count;
	struct {
		unsigned branch;
		uintptr_t address;
	} ways[WAYS_MAX];
	unsigned way_count;
	bool is_straight, is_full;
};

static struct draft draft; /* one call at a time */

/* --- paths --- */

static bool is_inside(uintptr_t address)
{
	const struct decode_leaving *leaving = draft.leaving;

	for (uint32_t i = 0; i < leaving->range_count; i++)
		if (address - leaving->ranges[i].start <
		    leaving->ranges[i].end - leaving->ranges[i].start)
			return true;
	return false;
}

static struct operation *add_operation(unsigned code, uintptr_t address)
{
	struct operation *operation;

	if (draft.count == OPERATIONS_MAX) {
		draft.is_full = true;
		return &draft.operations[OPERATIONS_MAX - 1];
	}
	draft.addresses[draft.count] = address;
	operation = &draft.operations[draft.count++];
	translate_clear(operation, code);
	return operation;
}

static void add_stop(enum shim_unavailable reason)
{
	add_operation(OPERATION_STOP, 0)->reason = (uint8_t)reason;
}

static bool is_call_of(const struct instruction *call, const char *name)
{
	uintptr_t target;
	const uintptr_t *slot;

	instruction_target(call, &target, &slot);
	if (target)
		slot = instruction_slot_behind(target);
	return slot && instruction_is_slot_of(slot, name);
}

/* These calls come after an exception, or before a loop that was a tail call.  After
 * any other call the function continues. */
static enum shim_unavailable reason_of_call(const struct instruction *call)
{
	if (is_call_of(call, "_Unwind_Resume") ||
	    is_call_of(call, "__stack_chk_fail") ||
	    is_call_of(call, "__cyg_profile_func_enter"))
		return SHIM_UNAVAILABLE_NOT_RETURNED;
	return SHIM_UNAVAILABLE_INLINED;
}

/* Whether the code at @at reports a failure of the stack protector. */
static bool reports_failure(uintptr_t at)
{
	struct instruction instruction;

	for (int i = 0; i < 4 && instruction_decode(&instruction, at); i++) {
		if (instruction.head.meta.category == ZYDIS_CATEGORY_CALL)
			return is_call_of(&instruction, "__stack_chk_fail");
		if (instruction.head.meta.category == ZYDIS_CATEGORY_RET ||
		    instruction.head.meta.category ==
			    ZYDIS_CATEGORY_UNCOND_BR ||
		    instruction.head.meta.category == ZYDIS_CATEGORY_COND_BR)
			break;
		at = instruction_next(&instruction);
	}
	return false;
}

static bool find_known(uintptr_t address, unsigned *at)
{
	for (unsigned i = 0; i < draft.count; i++) {
		if (draft.addresses[i] != address)
			continue;
		*at = i;
		return true;
	}
	return false;
}

/* Returns the address at which the path continues; 0 if the path ends. */
static uintptr_t follow_branch(const struct instruction *instruction)
{
	int condition = translate_condition(instruction);
	uintptr_t target, next = instruction_next(instruction);
	const uintptr_t *slot;
	struct operation *operation;

	instruction_target(instruction, &target, &slot);
	if (condition < 0 || !is_inside(target) ||
	    draft.way_count == WAYS_MAX) {
		add_stop(SHIM_UNAVAILABLE_CODE);
		return 0;
	}
	if (reports_failure(target) || reports_failure(next)) {
		operation = add_operation(OPERATION_GUARD, instruction->at);
		operation->condition = (uint8_t)condition;
		if (reports_failure(target))
			return next;
		operation->condition ^= 1;
		return target;
	}
	draft.ways[draft.way_count].branch = draft.count;
	draft.ways[draft.way_count++].address = target;
	operation = add_operation(OPERATION_BRANCH, instruction->at);
	operation->condition = (uint8_t)condition;
	draft.is_straight = false;
	return next;
}

static uintptr_t follow_jump(const struct instruction *instruction)
{
	uintptr_t target;
	const uintptr_t *slot;

	instruction_target(instruction, &target, &slot);
	if (target && is_inside(target) && target != draft.leaving->function)
		return target;
	/* A tail call, or a jump table. */
	add_stop(target || slot ? SHIM_UNAVAILABLE_NOT_RETURNED :
				  SHIM_UNAVAILABLE_CODE);
	return 0;
}

static uintptr_t add_translated(const struct instruction *instruction)
{
	struct operation operations[TRANSLATE_OPERATIONS_MAX];
	int count = translate(instruction, operations);

	if (count < 0) {
		add_stop(SHIM_UNAVAILABLE_CODE);
		return 0;
	}
	for (int i = 0; i < count; i++)
		*add_operation(0, i == 0 ? instruction->at : 0) = operations[i];
	return instruction_next(instruction);
}

/* Translates one instruction.  Returns the address at which the path continues; 0 if
 * the path ends. */
static uintptr_t translate_at(uintptr_t at)
{
	struct instruction instruction;
	struct operation *operation;

	if (!is_inside(at) || !instruction_decode(&instruction, at)) {
		add_stop(SHIM_UNAVAILABLE_CODE);
		return 0;
	}
	switch (instruction.head.meta.category) {
	case ZYDIS_CATEGORY_RET:
		operation = add_operation(OPERATION_RETURN, at);
		operation->base = SP;
		return 0;
	case ZYDIS_CATEGORY_CALL:
		add_stop(reason_of_call(&instruction));
		return 0;
	case ZYDIS_CATEGORY_UNCOND_BR: return follow_jump(&instruction);
	case ZYDIS_CATEGORY_COND_BR: return follow_branch(&instruction);
	default: return add_translated(&instruction);
	}
}

static void follow_way(uintptr_t at)
{
	unsigned number;

	while (at && !draft.is_full) {
		if (find_known(at, &number)) {
			add_operation(OPERATION_JUMP, 0)->target = (uint16_t)
				number;
			draft.is_straight = false;
			break;
		}
		at = translate_at(at);
	}
}

static void write_recipe(void)
{
	follow_way(draft.leaving->hook);
	for (unsigned i = 0; i < draft.way_count && !draft.is_full; i++) {
		draft.operations[draft.ways[i].branch].target =
			(uint16_t)draft.count;
		follow_way(draft.ways[i].address);
	}
}

/* --- liveness --- */

static struct parts parts_of_result(const struct decode_recipe *recipe)
{
	struct parts set = { 0, 0 };
	unsigned integers = 0, vectors = 0;
	uint32_t left = recipe->result_size;

	if (recipe->is_address) {
		parts_add(&set, 0, 0, 8);
	} else if (recipe->long_count) {
		set.general |= PARTS_LONGS;
	} else if (recipe->is_split) {
		parts_add(&set, REGISTER_VECTOR, 0, 16);
		parts_add(&set, REGISTER_VECTOR + 1, 0, 16);
	} else if (recipe->is_whole) {
		parts_add(&set, REGISTER_VECTOR, 0, recipe->result_size);
	} else {
		for (int i = 0; i < 2 && recipe->classes[i]; i++) {
			uint32_t size = left < 8 ? left : 8;

			if (recipe->classes[i] == PROTOTYPE_INTEGER)
				parts_add(&set, integers++ * 2, 0, size);
			else
				parts_add(&set, REGISTER_VECTOR + vectors++, 0,
					  size);
			left -= size;
		}
	}
	return set;
}

static struct parts live[OPERATIONS_MAX + 1]; /* before each */

static struct parts live_after(unsigned i)
{
	const struct operation *operation = &draft.operations[i];
	struct parts set = { 0, 0 };

	if (operation->code == OPERATION_RETURN ||
	    operation->code == OPERATION_STOP)
		return set;
	if (operation->code == OPERATION_JUMP)
		return live[operation->target];
	set = live[i + 1];
	if (operation->code == OPERATION_BRANCH) {
		set.general |= live[operation->target].general;
		set.vectors |= live[operation->target].vectors;
	}
	return set;
}

static bool is_wanted(const struct operation *operation, struct parts after,
		      bool keeps_guards)
{
	struct parts set = parts_written(operation);

	if (operation->code == OPERATION_GUARD)
		return keeps_guards;
	if (operation->code == OPERATION_NOTHING)
		return false;
	if (operation_is_flow(operation) || operation->to == PLACE_MEMORY)
		return true;
	if (operation->sets_flags && (after.general & PARTS_FLAGS))
		return true;
	if (operation_is_long(operation))
		return (after.general & PARTS_LONGS) != 0;
	/* A vector that is partly written is live if one of its parts is live. */
	if (operation->to >= REGISTER_VECTOR && operation->to < REGISTER_HIGH)
		set.vectors |= parts_of_vector(
			operation->to, operation->to_offset, operation->size);
	return (set.general & after.general) || (set.vectors & after.vectors);
}

/* Liveness analysis: repeats until nothing changes. */
static void find_live(const struct decode_recipe *recipe, bool keeps_guards)
{
	struct parts end = parts_of_result(recipe);
	bool changes = true;

	memset(live, 0, sizeof(live));
	while (changes) {
		changes = false;
		for (unsigned i = draft.count; i-- > 0;) {
			const struct operation *operation =
				&draft.operations[i];
			struct parts after = live_after(i), read, written;

			if (operation->code == OPERATION_RETURN)
				after = end;
			if (is_wanted(operation, after, keeps_guards)) {
				read = parts_read(operation, &after);
				written = parts_written(operation);
				after.general &= ~written.general;
				after.vectors &= ~written.vectors;
				after.general |= read.general;
				after.vectors |= read.vectors;
			}
			changes |= after.general != live[i].general ||
				   after.vectors != live[i].vectors;
			live[i] = after;
		}
	}
}

static void remove_dead(bool keeps_guards)
{
	static uint16_t places[OPERATIONS_MAX + 1];
	unsigned kept = 0;

	for (unsigned i = 0; i < draft.count; i++) {
		places[i] = (uint16_t)kept;
		if (is_wanted(&draft.operations[i], live_after(i),
			      keeps_guards))
			kept++;
		else
			draft.operations[i].code = OPERATION_NOTHING;
	}
	kept = 0;
	for (unsigned i = 0; i < draft.count; i++) {
		struct operation *operation = &draft.operations[i];

		if (operation->code == OPERATION_NOTHING)
			continue;
		if (!(live_after(i).general & PARTS_FLAGS))
			operation->sets_flags = operation->keeps_flags = false;
		if (operation->code == OPERATION_BRANCH ||
		    operation->code == OPERATION_JUMP)
			operation->target = places[operation->target];
		draft.operations[kept++] = *operation;
	}
	draft.count = kept;
}

/* --- values relative to registers at the hook --- */

struct relative {
	bool is_known;
	uint8_t number;
	int64_t offset;
};

static struct relative relatives[16];

static void find_relative(unsigned place, struct relative *found)
{
	found->is_known = false;
	if (place < REGISTER_KEPT)
		*found = relatives[place];
}

/* Whether a later operation reads the flags that operation @at sets. */
static bool flags_matter(unsigned at)
{
	static const struct parts nothing;

	for (unsigned i = at + 1; i < draft.count; i++) {
		if (parts_read(&draft.operations[i], &nothing).general &
		    PARTS_FLAGS)
			return true;
		if (parts_written(&draft.operations[i]).general & PARTS_FLAGS)
			return false;
	}
	return false;
}

static void rebase_memory(struct operation *operation)
{
	struct relative found;

	find_relative(operation->base, &found);
	if (found.is_known) {
		operation->base = REGISTER_KEPT + found.number;
		operation->displacement += found.offset;
	}
	find_relative(operation->index, &found);
	if (found.is_known) {
		operation->index = REGISTER_KEPT + found.number;
		operation->displacement += found.offset * operation->scale;
	}
}

static void replace_register(uint8_t *place)
{
	struct relative found;

	find_relative(*place, &found);
	if (found.is_known && found.offset == 0)
		*place = REGISTER_KEPT + found.number;
}

/* The operation's result, if it is still a register at the hook plus an offset. */
static struct relative follow_relative(const struct operation *operation,
				       bool is_add, bool is_sub)
{
	struct relative found = { .is_known = false };
	unsigned from = operation->second;

	if (operation->size != 8 || operation->to >= REGISTER_KEPT)
		return found;
	if (operation->code == OPERATION_MOVE && operation->from_size == 8 &&
	    from < REGISTER_KEPT)
		found = relatives[from];
	if (operation->code == OPERATION_ADDRESS &&
	    operation->index == PLACE_NONE && operation->base < REGISTER_KEPT) {
		found = relatives[operation->base];
		found.offset += operation->displacement;
	}
	if ((is_add || is_sub) && from == PLACE_IMMEDIATE &&
	    operation->first < REGISTER_KEPT) {
		found = relatives[operation->first];
		found.offset += is_add ? operation->immediate :
					 -operation->immediate;
	}
	return found;
}

/* Replaces values by register plus offset, so steps of the stack pointer become
 * dead. */
static void make_relative(void)
{
	static const uint8_t kept[] = { 3, SP, BP, 12, 13, 14, 15 };

	memset(relatives, 0, sizeof(relatives));
	for (size_t i = 0; i < sizeof(kept); i++)
		relatives[kept[i]] = (struct relative){ true, kept[i], 0 };
	for (unsigned i = 0; i < draft.count; i++) {
		struct operation *operation = &draft.operations[i];
		bool is_integer = operation->code == OPERATION_INTEGER;
		bool is_add = is_integer && operation->number / 4 == INDEX_ADD;
		bool is_sub = is_integer && operation->number / 4 == INDEX_SUB;
		struct relative result = follow_relative(operation, is_add,
							 is_sub);

		if (operation_uses_memory(operation))
			rebase_memory(operation);
		/* Its other operands are depths in the x87 stack. */
		if (operation_is_long(operation))
			continue;
		if (!operation_is_zero(operation)) {
			replace_register(&operation->first);
			replace_register(&operation->second);
		}
		if (result.is_known && !flags_matter(i)) {
			uint8_t to = operation->to;

			translate_clear(operation, OPERATION_ADDRESS);
			operation->size = 8;
			operation->to = to;
			operation->base = REGISTER_KEPT + result.number;
			operation->displacement = result.offset;
		}
		if (operation->code == OPERATION_PAIR)
			relatives[0].is_known = relatives[2].is_known = false;
		else if (operation->to < REGISTER_KEPT)
			relatives[operation->to] = result;
		else if (operation->to >= REGISTER_HIGH &&
			 operation->to < REGISTER_HIGH + 4)
			relatives[operation->to - REGISTER_HIGH].is_known =
				false;
	}
}

/* --- the recipe --- */

/* Whether loads depend on a successful check of the stack protector. */
static bool needs_guards(void)
{
	bool is_guarded = false;

	if (!draft.is_straight)
		return true;
	for (unsigned i = 0; i < draft.count; i++) {
		const struct operation *operation = &draft.operations[i];

		is_guarded |= operation->code == OPERATION_GUARD;
		if (is_guarded && operation_uses_memory(operation) &&
		    operation->code != OPERATION_ADDRESS &&
		    operation->code != OPERATION_RETURN &&
		    operation->base != REGISTER_KEPT + SP &&
		    is_wanted(operation, live_after(i), false))
			return true;
	}
	return false;
}

static bool is_available(const struct parts *set)
{
	static const uint8_t kept[] = { 3, SP, BP, 12, 13, 14, 15 };
	uint64_t general = set->general & ~PARTS_LONGS;

	for (size_t i = 0; i < sizeof(kept); i++)
		general &= ~parts_of_general(kept[i], 8);
	return general == 0 && set->vectors == 0;
}

/* A RETURN; without one, the last STOP; NULL without any. */
static const struct operation *find_end(void)
{
	const struct operation *end = NULL;

	for (unsigned i = 0; i < draft.count; i++) {
		const struct operation *operation = &draft.operations[i];

		if (operation->code == OPERATION_RETURN)
			return operation;
		if (operation->code == OPERATION_STOP)
			end = operation;
	}
	return end;
}

/*
 * A result larger than two eightbytes, of a type that may be returned in several ways.
 * Result registers do not survive the hook's call, so the registers written after it
 * show the way that is used.  A vector is in one register if the processor has such
 * registers; otherwise gcc returns it in memory, and clang in two registers.  Two long
 * doubles are a complex number.
 */
static bool set_wide(struct decode_recipe *recipe)
{
	struct parts written = { 0, 0 };
	bool is_full = false, in_two, in_memory;
	int longs = 0;

	for (unsigned i = 0; i < draft.count; i++) {
		const struct operation *operation = &draft.operations[i];
		struct parts set = parts_written(operation);

		/* Thread-local loads belong to the stack protector. */
		if (!operation->is_thread_local)
			written.general |= set.general;
		written.vectors |= set.vectors;
		is_full |= (set.vectors &
			    parts_of_vector(REGISTER_VECTOR, 16, 16)) &&
			   (operation->width == 32 ||
			    operation->to_offset + operation->size == 32);
		longs += operation->code == OPERATION_LONG_PUSH ||
			 operation->code == OPERATION_LONG_COPY;
		if (operation->code == OPERATION_LONG_POP ||
		    operation->code == OPERATION_LONG)
			longs -= operation->width;
	}
	in_two = (written.vectors & 0x77) == 0x77;
	in_memory = (written.general & parts_of_general(0, 8)) ==
		    parts_of_general(0, 8);
	if (longs == 2 && draft.is_straight)
		recipe->long_count = 2;
	else if (longs)
		return false;
	else if (is_full)
		recipe->is_whole = true;
	else if (in_two != in_memory) {
		recipe->is_split = in_two;
		recipe->is_address = in_memory;
	} else
		return false;
	return true;
}

static bool set_result(const struct prototype_value *value,
		       struct decode_recipe *recipe)
{
	recipe->result_size = value->size;
	switch (value->kind) {
	case PROTOTYPE_MEMORY:
	case PROTOTYPE_REFERENCE: recipe->is_address = true; return true;
	case PROTOTYPE_X87:
		recipe->long_count = (uint8_t)(value->size / 16);
		return value->size == 16 || value->size == 32;
	case PROTOTYPE_REGISTERS:
		recipe->is_whole = value->is_whole;
		recipe->classes[0] = value->classes[0];
		recipe->classes[1] = value->classes[1];
		return value->size > 0 && value->size <= 16;
	case PROTOTYPE_UNKNOWN:
		if (!value->is_wide || value->size != 32)
			return false;
		return set_wide(recipe);
	default: return false;
	}
}

static bool is_relative(const struct operation *operation)
{
	return operation->base >= REGISTER_KEPT &&
	       operation->base < REGISTER_VECTOR &&
	       operation->index == PLACE_NONE && !operation->is_thread_local;
}

/* Finds the simple form of a recipe that is only a move to rax. */
static void find_simple_form(struct decode_recipe *recipe)
{
	const struct operation *first = &draft.operations[0],
			       *end = &draft.operations[1];
	struct decode_simple simple = { .is_simple = true };
	bool is_alone = recipe->is_address ||
			(recipe->classes[0] == PROTOTYPE_INTEGER &&
			 recipe->classes[1] == PROTOTYPE_NO_CLASS);

	if (draft.count != 2 || !is_alone || first->to != 0 ||
	    first->size < 4 || end->code != OPERATION_RETURN ||
	    !is_relative(end) ||
	    end->displacement != (int32_t)end->displacement)
		return;
	simple.return_number = end->base - REGISTER_KEPT;
	simple.return_offset = (int32_t)end->displacement;
	if (first->code == OPERATION_ADDRESS && first->size == 8 &&
	    is_relative(first)) {
		simple.number = first->base - REGISTER_KEPT;
		simple.offset = first->displacement;
	} else if (first->code != OPERATION_MOVE) {
		return;
	} else if (first->second == PLACE_IMMEDIATE) {
		simple.offset = first->immediate;
	} else if (first->second >= REGISTER_KEPT &&
		   first->second < REGISTER_VECTOR &&
		   first->from_size >= recipe->result_size) {
		simple.number = first->second - REGISTER_KEPT;
	} else if (first->second == PLACE_MEMORY && is_relative(first)) {
		simple.number = first->base - REGISTER_KEPT;
		simple.offset = first->displacement;
		simple.is_loaded = true;
		simple.size = first->from_size;
	} else {
		return;
	}
	recipe->simple = simple;
}

static enum shim_unavailable make_recipe(struct decode_recipe *recipe)
{
	const struct operation *end;
	bool keeps_guards;

	write_recipe();
	if (draft.is_full)
		return SHIM_UNAVAILABLE_CODE;
	end = find_end();
	if (!end)
		return SHIM_UNAVAILABLE_CODE;
	if (end->code == OPERATION_STOP)
		return end->reason;
	if (!set_result(draft.leaving->value, recipe))
		return SHIM_UNAVAILABLE_NOT_UNDERSTOOD;
	if (draft.is_straight)
		make_relative();
	find_live(recipe, !draft.is_straight);
	keeps_guards = needs_guards();
	if (keeps_guards)
		find_live(recipe, true);
	if (!is_available(&live[0]))
		return SHIM_UNAVAILABLE_CODE;
	recipe->copies = !draft.is_straight || live[0].general & ~PARTS_LONGS;
	remove_dead(keeps_guards);
	find_simple_form(recipe);
	return SHIM_AVAILABLE;
}

bool decode_result(const struct decode_leaving *leaving,
		   struct decode_recipe *recipe, uint32_t room)
{
	uint32_t size;

	memset(&draft, 0, sizeof(draft));
	memset(recipe, 0, sizeof(*recipe));
	draft.leaving = leaving;
	draft.is_straight = true;
	recipe->size = sizeof(*recipe);
	recipe->reason = (uint8_t)(is_inside(leaving->hook) ?
					   make_recipe(recipe) :
					   SHIM_UNAVAILABLE_INLINED);
	if (recipe->reason)
		return true;
	size = (uint32_t)(sizeof(*recipe) +
			  draft.count * sizeof(draft.operations[0]));
	if (size > room)
		return false;
	recipe->size = size;
	recipe->count = (uint16_t)draft.count;
	memcpy(recipe->operations, draft.operations,
	       draft.count * sizeof(draft.operations[0]));
	return true;
}
